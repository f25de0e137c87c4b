"""Products of half precision stay in it: their operands in half, their sums in single precision.

Importers compute such products in single precision and round once, which is right everywhere. Tensor cores do
the same from operands in half precision, at many times the speed.
"""

from collections.abc import Sequence
from typing import Any

from tuneloom.compiler.number_types import HALF
from tuneloom.compiler.rewriting import Lookup, dtype_of, name_of, rewritten, shape_of

_WINDOWS = ("strides", "padding", "dilation", "groups", "data_layout", "kernel_layout", "out_layout")
_TURNED = (*_WINDOWS, "output_padding")
PRODUCTS = {
    "matmul": (),
    **{f"nn.conv{n}d": _WINDOWS for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": _TURNED for n in (1, 2, 3)},
}
"""Operators that sum products, by name, with the attributes that tell how."""


def products_in_half(module: Any) -> Any:
    """The module with every product reading the halves that its operands were made of."""
    return rewritten(module, _narrowed)


def _narrowed(builder: Any, call: Any, made: Lookup) -> Any | None:
    if name_of(call) == "astype" and dtype_of(call) in HALF:
        return _reduced(builder, call, made)
    operands = [half_of(one, made) for one in call.args] if name_of(call) in PRODUCTS else [None]
    if None in operands or len({dtype_of(one) for one in operands}) != 1:
        return None
    return in_half(call, operands)


def in_half(product: Any, operands: Sequence[Any]) -> Any:
    """A product of other operands, summed in single precision."""
    from tvm import relax

    name = name_of(product)
    make = relax.op.matmul if name == "matmul" else getattr(relax.op.nn, name.removeprefix("nn."))
    attributes = {one: getattr(product.attrs, one) for one in PRODUCTS[name]}
    return make(*operands, **attributes, out_dtype="float32")


def _reduced(builder: Any, cast: Any, made: Lookup) -> Any | None:
    """A mean or sum of halves that is rounded to one, as one operator: its loops sum in single precision."""
    from tvm import relax

    source = made(cast.args[0])
    moved = name_of(source) in ("reshape", "flatten", "squeeze")
    reduction = made(source.args[0]) if moved else source
    half = half_of(reduction.args[0], made) if name_of(reduction) in ("mean", "sum") else None
    if half is None or dtype_of(half) != dtype_of(cast):
        return None
    done = builder.emit(relax.Call(reduction.op, [half], reduction.attrs))
    return relax.op.reshape(done, shape_of(cast)) if moved else done


def half_of(value: Any, made: Lookup) -> Any | None:
    """What a value in single precision was cast from; None if that was no half."""
    cast = made(value)
    if name_of(cast) != "astype" or dtype_of(cast.args[0]) not in HALF:
        return None
    return cast.args[0]
