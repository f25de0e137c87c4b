"""Shapes of inputs as requests have them: one for an input, or several for a bundle that takes them all."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field, StringConstraints, WithJsonSchema

_MOST_SIZE = 2**31 - 1
_MOST = 16
_SHAPE = {
    "type": "array",
    "items": {"type": "integer", "minimum": 1, "maximum": _MOST_SIZE},
    "minItems": 1,
    "maxItems": _MOST,
}
_SHAPES = {"type": "array", "items": _SHAPE, "minItems": 1, "maxItems": _MOST}


def _is_shape(value: Any) -> bool:
    sized = isinstance(value, list) and 1 <= len(value) <= _MOST
    return sized and all(type(size) is int and 1 <= size <= _MOST_SIZE for size in value)


def _checked(value: Any) -> Any:
    several = isinstance(value, list) and 1 <= len(value) <= _MOST and all(map(_is_shape, value))
    if not several and not _is_shape(value):
        raise ValueError("give a list of sizes, as in [1, 3, 224, 224], or a list of such lists")
    return value


# A union of the two would name its own parts in the path of an error.
_Given = Annotated[Any, AfterValidator(_checked), WithJsonSchema({"anyOf": [_SHAPE, _SHAPES]})]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Shapes = Annotated[dict[_Name, _Given], Field(max_length=64)]
