"""Functions that take the place of kernels and call foreign code."""

from typing import Any

from tuneloom.backends.meaning import Meaning


def calling(symbol: str, meaning: Meaning) -> Any:
    """A function with a kernel's parameters that calls a C function with pointers to all of them.

    The C function takes the inputs in order, then the outputs, and returns an int.
    """
    from tvm import te, tirx

    inputs = placeholders(meaning)
    outputs = [meaning.type_of(number) for number in meaning.outputs]

    def call(ins: Any, outs: Any) -> Any:
        pointers = [one.access_ptr("r") for one in ins] + [one.access_ptr("w") for one in outs]
        return tirx.call_extern("int32", symbol, *pointers)

    made = te.extern(
        [one.shape for one in outputs], inputs, call, name="foreign", dtype=[one.dtype for one in outputs]
    )
    results = made if isinstance(made, (list, tuple)) else [made]
    return te.create_prim_func([*inputs, *results]).with_attr("tirx.is_scheduled", True)


def placeholders(meaning: Meaning) -> list[Any]:
    """The inputs of a kernel, as the parameters of a function."""
    from tvm import te

    return [
        te.placeholder(one.shape, dtype=one.dtype, name=f"input{number}")
        for number, one in enumerate(meaning.inputs)
    ]
