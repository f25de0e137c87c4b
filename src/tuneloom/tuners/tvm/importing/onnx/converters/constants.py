"""What converters ask about the values they get."""

from typing import Any

from tuneloom.compiler.lazy import tvm


def is_constant(value: Any) -> bool:
    """Whether a value is known at import."""
    return isinstance(value, tvm.ir.GenericConst)


def is_float32(value: Any) -> bool:
    """Whether a value has single precision."""
    return str(value.ty.dtype) == "float32"


def number(bound: Any, missing: float) -> float | None:
    """A bound as a number; None when it is only known when the model runs."""
    if bound is None:
        return missing
    return float(bound.value.numpy().item()) if is_constant(bound) else None


def array(value: Any) -> Any | None:
    """A known value as an array; None when it is only known when the model runs."""
    return value.value.numpy() if value is not None and is_constant(value) else None


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of a value; all shapes are numbers once a model is clean."""
    return tuple(int(extent) for extent in value.ty.shape.values)


def dtype_of(value: Any) -> str:
    """The element type of a value."""
    return str(value.ty.dtype)
