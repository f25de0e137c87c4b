"""What requests look like."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    create_model,
)

from tuneloom.app.requests.schema import job_fields
from tuneloom.model.fields import SHAPES, TEXT, YES_OR_NO, Choice, JobField, NumberKind, PathKind, is_shapes

_MOST_SIZE = 2**31 - 1
_MOST = 16
_SHAPE = {
    "type": "array",
    "items": {
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": _MOST_SIZE},
            {"type": "string", "pattern": r"^[0-9]{1,9}\.\.[0-9]{1,9}$"},
        ]
    },
    "minItems": 1,
    "maxItems": _MOST,
}
_SHAPES = {"type": "array", "items": _SHAPE, "minItems": 1, "maxItems": _MOST}


def _checked(value: Any) -> Any:
    few = isinstance(value, list) and all(
        len(each) <= _MOST for each in (value, *value) if isinstance(each, list)
    )
    if not few or not is_shapes(value):
        raise ValueError("give a list of sizes, as in [1, 3, 224, 224], or a list of such lists")
    return value


# A union of the two would name its own parts in the path of an error.
_Given = Annotated[Any, AfterValidator(_checked), WithJsonSchema({"anyOf": [_SHAPE, _SHAPES]})]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Shapes = Annotated[dict[_Name, _Given], Field(max_length=64)]


_MOST_WHOLE = 2**31 - 1
Anything = Annotated[Any, Field()]
Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


class RequestBody(BaseModel):
    """A body; a key that nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True)


class JobBody(RequestBody):
    """A job. It needs a budget (trials, seconds), a goal (goal_ms, goal_ratio), or both."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"model": "zoo:squeezenet", "trials": 500, "goal_ms": 3.0}]},
    )
    model: Text = Field(description="the digest of an uploaded model, or a name such as zoo:resnet18")
    name: Annotated[Text, Field(max_length=100)] | None = None


def job_body(fields: Sequence[JobField]) -> type[JobBody]:
    """The body of a job that may say all of these of it, as far as requests may."""
    asked = [field for field in fields if field.remote and field.name not in JobBody.model_fields]
    made: dict[str, Any] = {field.name: (_type(field) | None, _described(field)) for field in asked}
    return create_model("JobAsked", __base__=JobBody, __doc__=JobBody.__doc__, __module__=__name__, **made)


def _described(field: JobField) -> Any:
    upload = "; the digest of its upload" if isinstance(field.kind, PathKind) else ""
    usually = f" (default: {field.usually})" if field.usually else ""
    return Field(default=None, description=f"{field.help}{upload}{usually}".replace("`", ""))


def _type(field: JobField) -> Any:
    """What pydantic makes of a kind of value."""
    kind = field.kind
    if isinstance(kind, NumberKind):
        above = {"gt" if kind.excludes_least else "ge": kind.least}
        bounds: dict[str, Any] = above | {"le": kind.most} | ({} if kind.whole else {"allow_inf_nan": False})
        return Annotated[int if kind.whole else float, Field(**bounds)]
    if isinstance(kind, Choice):
        return Literal[kind.names]
    if isinstance(kind, PathKind):
        return Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
    return {SHAPES: Shapes, YES_OR_NO: bool, TEXT: Text}.get(kind, Anything)


if TYPE_CHECKING:
    JobAsked = JobBody
else:
    JobAsked = job_body(job_fields())


class PriorityAsked(RequestBody):
    """The new priority of a job."""

    priority: Annotated[int, Field(ge=-_MOST_WHOLE, le=_MOST_WHOLE)]


class LimitsAsked(RequestBody):
    """A tenant's share and quotas; omitted fields keep their value, or get the default."""

    weight: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)] | None = None
    jobs_at_once: Annotated[int, Field(ge=0, le=_MOST_WHOLE)] | None = None
    trials_a_day: Annotated[int, Field(ge=0, le=_MOST_WHOLE)] | None = None
    bytes_stored: Annotated[int, Field(ge=0, le=2**50)] | None = None
    most_priority: Annotated[int, Field(ge=0, le=_MOST_WHOLE)] | None = None
    shares_records: bool | None = Field(default=None, description="whether its records help other tenants")


class TenantAsked(LimitsAsked):
    """A new tenant."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]


class TokenAsked(RequestBody):
    """A new token of a tenant."""

    tenant: Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
    name: Text = Field(description="what it is for")
    role: Literal["reader", "submitter", "administrator"]
    days: Annotated[float, Field(gt=0, le=36500, allow_inf_nan=False)] | None = Field(
        default=None, description="how long it opens anything (default: for ever)"
    )


class LoginAsked(RequestBody):
    """A token to exchange for a session of the page."""

    token: Text = Field(description="a token of any role")
