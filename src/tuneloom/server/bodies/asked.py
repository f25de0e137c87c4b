"""What requests look like."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tuneloom.server.bodies.shapes import Shapes

_MOST_WHOLE = 2**31 - 1
Text = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Size = Annotated[int, Field(ge=1, le=_MOST_WHOLE)]
Positive = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]


class RequestBody(BaseModel):
    """A body; a key that nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid", strict=True)


class JobAsked(RequestBody):
    """A job. What is wanted is a budget (trials, seconds), a goal (goal_ms, goal_ratio), or both."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"model": "zoo:squeezenet", "trials": 500, "goal_ms": 3.0}]},
    )
    model: Text = Field(description="the digest of an uploaded model, or a name such as zoo:resnet18")
    name: Annotated[Text, Field(max_length=100)] | None = None
    tuner: Text | None = None
    target: Text | None = Field(default=None, description="cpu, cuda, or a TVM target")
    device: Text | None = Field(default=None, description="the key of the device to measure on")
    trials: Size | None = Field(default=None, description="at most so many trials (default: 1000)")
    seconds: Positive | None = Field(default=None, description="at most so much time for tuning")
    goal_ms: Positive | None = Field(default=None, description="end as soon as the model is this fast")
    goal_ratio: Positive | None = Field(
        default=None, description="end as soon as it takes at most so many times as long as in ONNX Runtime"
    )
    deadline_s: Positive | None = Field(default=None, description="wanted so many seconds from now")
    priority: Annotated[int, Field(ge=-_MOST_WHOLE, le=_MOST_WHOLE)] | None = None
    batch: Size | None = None
    seed: Annotated[int, Field(ge=0, le=_MOST_WHOLE)] | None = None
    shapes: Shapes | None = Field(
        default=None,
        description="sizes of inputs that the model leaves open; several of an input make one bundle",
    )
    pad: bool | None = Field(
        default=None, description="let the bundle pad smaller inputs to the next larger of its shapes"
    )
    only_tvm: bool | None = Field(
        default=None,
        description="refuse a model that TVM can't take as a whole, where ONNX Runtime would help",
    )
    layout: Text | None = None
    reuse: Literal["auto", "off", "transfer", "share", "transfer-only"] | None = None
    run_timeout_s: Positive | None = None
    build_timeout_s: Positive | None = None
    waits_for_devices: bool | None = None


class PriorityAsked(RequestBody):
    """Another priority for a job."""

    priority: Annotated[int, Field(ge=-_MOST_WHOLE, le=_MOST_WHOLE)]


class LimitsAsked(RequestBody):
    """A tenant's share and quotas; what is left out keeps its default, or its value."""

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
    """A token that is exchanged for a session of the page."""

    token: Text = Field(description="a token of any role")
