"""Products of half precision stay in it: their operands in half, their sums in single precision.

Importers compute such products in single precision and round once, which is right everywhere. Tensor cores do
the same from operands in half precision, at many times the speed.
"""

from typing import Any

from tuneloom.backends.cuda.passes.rewriting import Lookup, dtype_of, name_of, rewritten

HALF = frozenset(("float16", "bfloat16"))
_CONVOLUTIONS = ("strides", "padding", "dilation", "groups", "data_layout", "kernel_layout", "out_layout")


def products_in_half(module: Any) -> Any:
    """The module with every product reading the halves that its operands were made of."""
    return rewritten(module, _narrowed)


def _narrowed(_builder: Any, call: Any, made: Lookup) -> Any | None:
    from tvm import relax

    if name_of(call) not in ("matmul", "nn.conv2d", "nn.conv1d"):
        return None
    operands = [half_of(one, made) for one in call.args]
    if None in operands or len({dtype_of(one) for one in operands}) != 1:
        return None
    if name_of(call) == "matmul":
        return relax.op.matmul(*operands, out_dtype="float32")
    make = relax.op.nn.conv2d if name_of(call) == "nn.conv2d" else relax.op.nn.conv1d
    attributes = {name: getattr(call.attrs, name) for name in _CONVOLUTIONS}
    return make(*operands, **attributes, out_dtype="float32")


def half_of(value: Any, made: Lookup) -> Any | None:
    """What a value in single precision was cast from; None if that was no half."""
    cast = made(value)
    if name_of(cast) != "astype" or dtype_of(cast.args[0]) not in HALF:
        return None
    return cast.args[0]
