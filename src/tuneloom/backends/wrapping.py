"""Functions that take the place of kernels and call foreign code."""

from collections.abc import Sequence
from typing import Any

from tuneloom.backends.meaning import Meaning, TensorType


def calling(symbol: str, meaning: Meaning) -> Any:
    """A function with a kernel's parameters that calls a C function with pointers to all of them.

    The C function takes the inputs in order, then the outputs, and returns an int.
    """
    return calling_with(symbol, meaning.inputs, [meaning.type_of(number) for number in meaning.outputs])


def calling_with(symbol: str, takes: Sequence[TensorType], gives: Sequence[TensorType]) -> Any:
    """The same for a kernel of which only the types are known."""
    from tvm import te, tirx

    inputs = placeholders(takes)

    def call(ins: Any, outs: Any) -> Any:
        pointers = [pointer(one, "r") for one in ins] + [pointer(one, "w") for one in outs]
        return tirx.call_extern("int32", symbol, *pointers)

    made = te.extern(
        [one.shape for one in gives], inputs, call, name="foreign", dtype=[one.dtype for one in gives]
    )
    results = made if isinstance(made, (list, tuple)) else [made]
    return te.create_prim_func([*inputs, *results]).with_attr("tirx.is_scheduled", True)


def pointer(buffer: Any, access: str) -> Any:
    """Where a buffer begins, for foreign code that reads (`r`) or writes (`w`, `rw`) it.

    A host holds narrow floats as whole numbers, and TVM would refuse to point to these as floats.
    """
    narrow = str(buffer.dtype).startswith(("bfloat", "float8"))
    return buffer.data if narrow else buffer.access_ptr(access)


def placeholders(takes: Sequence[TensorType]) -> list[Any]:
    """The inputs of a kernel, as the parameters of a function."""
    from tvm import te

    return [
        te.placeholder(one.shape, dtype=one.dtype, name=f"input{number}") for number, one in enumerate(takes)
    ]
