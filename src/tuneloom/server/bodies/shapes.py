"""Shapes of inputs as requests have them: one for an input, or several for a bundle that takes them all."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema

from tuneloom.model.fields import is_shapes

_MOST_SIZE = 2**31 - 1
_MOST = 16
_SHAPE = {
    "type": "array",
    "items": {"type": "integer", "minimum": 1, "maximum": _MOST_SIZE},
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
