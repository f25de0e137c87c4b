"""Which values of an ONNX graph can pass between TVM and another runtime, and which are fixed in size."""

from collections.abc import Mapping, Sequence
from typing import Any

from tuneloom.compiler.lazy import onnx, relax
from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.importing.onnx.cleaning.constants import static_shape

_NUMBERS = frozenset(
    (
        *("float32", "float64", "float16", "bfloat16", "bool"),
        *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    )
)


def crosses(kind: Any) -> bool:
    """Whether both sides can hold a value of this type: a tensor of numbers, of any shape."""
    return kind is not None and kind.HasField("tensor_type") and number_type(kind) in _NUMBERS


def require_tensors(names: Sequence[str], types: Mapping[str, Any], what: str, where: str) -> None:
    """Raise ModelError for an input or output that is known to be something else than numbers."""
    for name in names:
        if types.get(name) is not None and not crosses(types[name]):
            raise ModelError(f"{where}: {what} {name!r} {_instead(types[name])}")


def _instead(kind: Any) -> str:
    """What a value is that is no tensor of numbers, and what to do about it."""
    if kind.HasField("tensor_type") and number_type(kind) not in ("", "object"):
        return f"has the type {number_type(kind)}, which bundles don't take or return; cast it in the model"
    return (
        "is not a tensor of numbers (a sequence, a map or text?); export without it, a classifier of "
        "scikit-learn with zipmap=False and whole numbers as labels"
    )


def number_type(kind: Any) -> str:
    """The name of a tensor's element type; nothing where there is none."""
    try:
        return str(onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type))
    except (KeyError, TypeError, ValueError):
        return ""


def relax_type(kind: Any) -> Any:
    """The type in Relax; without a shape where that depends on data."""
    if not crosses(kind):
        return relax.AnyType()
    shape = static_shape(kind)
    if shape is not None:
        return relax.TensorType(shape, number_type(kind))
    known = kind.tensor_type.HasField("shape")
    return relax.TensorType(dtype=number_type(kind), ndim=len(kind.tensor_type.shape.dim) if known else -1)


def open_shape(kind: Any) -> tuple[int, ...]:
    """The sizes of a tensor, -1 where one is not known; nothing if not even their number is."""
    dims = kind.tensor_type.shape.dim if kind is not None and kind.HasField("tensor_type") else ()
    return tuple(int(dim.dim_value) if dim.HasField("dim_value") else -1 for dim in dims)


def is_fixed(value: Any) -> bool:
    """Whether a value in Relax has a size that is known now; several in a tuple all have to."""
    kind = getattr(value, "ty", None)
    if isinstance(kind, relax.TupleType):
        return all(_fixed_tensor(field) or hasattr(field, "fields") for field in kind.fields)
    return kind is None or isinstance(kind, relax.ShapeType) or _fixed_tensor(kind)


def _fixed_tensor(kind: Any) -> bool:
    extents = getattr(getattr(kind, "shape", None), "values", None)
    return extents is not None and all(hasattr(extent, "value") for extent in extents)
