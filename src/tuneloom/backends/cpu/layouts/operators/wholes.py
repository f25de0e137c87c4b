"""Operators that a model has in whole numbers: by dot products where the CPU has them, exact in any case.

Data in 8 bits are widened and moved by their zero point before a convolution or product; both steps are
put off, and the kernel reads the narrow data. What lies between such operators keeps its blocks.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.expressions import whole_numbers
from tuneloom.backends.cpu.layouts.kernels import compute, dots, wholes
from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.backends.cpu.layouts.shapes import matrices, values
from tuneloom.backends.cpu.layouts.shapes.groups import Groups
from tuneloom.backends.cpu.layouts.shapes.values import Centred, Value
from tuneloom.backends.cpu.layouts.shapes.windows import Window, window_of
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import shape_of

_NARROW = ("int8", "uint8")
_NARROW_LANES = 4
"""With vectors of so many lanes even an image of few channels is worth being blocked for dot products."""


def _astype(rewriter: Rewriter, var: Any, call: Any) -> bool:
    data, shape = rewriter.value(call.args[0]), shape_of(var)
    kind, wanted = str(call.args[0].ty.dtype), str(call.attrs.dtype)
    if kind in _NARROW and wanted == "int32" and shape is not None:
        rewriter.bind(var, Centred(shape=shape, narrow=data, dtype=kind))
        return True
    return elementwise(rewriter, var, call)


def elementwise(rewriter: Rewriter, var: Any, call: Any) -> bool:
    """An operator of one tensor, on blocks if it has them."""
    data = rewriter.value(call.args[0])
    if not rewriter.is_blocked(data):
        return False
    rewriter.emit_blocked(var, rewriter.with_args(call, [rewriter.blocked(data)]))
    return True


def _rounding(rewriter: Rewriter, var: Any, call: Any) -> bool:
    """From floats to whole numbers or back, with one step and one zero point for all."""
    data, more = rewriter.value(call.args[0]), call.args[1:]
    if not rewriter.is_blocked(data) or any(_size(one) != 1 for one in more):
        return False
    rest = [rewriter.plain(rewriter.value(one)) for one in more]
    rewriter.emit_blocked(var, rewriter.with_args(call, [rewriter.blocked(data), *rest]))
    return True


def _subtract(rewriter: Rewriter, var: Any, call: Any) -> bool:
    data, known = rewriter.value(call.args[0]), whole_numbers(call.args[1])
    fresh = isinstance(data, Centred) and isinstance(data.zero, int) and data.zero == 0
    if not fresh or _size(call.args[1]) != 1 or shape_of(var) != data.shape:
        return _with_channels(rewriter, var, call)
    assert isinstance(data, Centred)
    zero = rewriter.plain(rewriter.value(call.args[1])) if known is None else int(known.item())
    rewriter.bind(var, Centred(shape=data.shape, narrow=data.narrow, dtype=data.dtype, zero=zero))
    return True


def _with_channels(rewriter: Rewriter, var: Any, call: Any) -> bool:
    """Blocked whole numbers and a constant with one number a channel, or one for all."""
    data, known, shape = rewriter.value(call.args[0]), whole_numbers(call.args[1]), shape_of(var)
    if shape is None or known is None or known.dtype != np.int32 or not rewriter.is_blocked(data):
        return False
    aligned = (1,) * (len(shape) - known.ndim) + known.shape
    if shape != data.shape or (known.size != 1 and aligned != (1, shape[1], *(1 for _ in shape[2:]))):
        return False
    each = rewriter.channel_constant(np.broadcast_to(known.reshape(-1), (shape[1],)), 0)
    rewriter.emit_blocked(var, rewriter.with_args(call, [rewriter.blocked(data), each]))
    return True


def _with_single(rewriter: Rewriter, var: Any, call: Any) -> bool:
    """Blocks and a tensor of one element, such as a scale that is only known when the model runs."""
    sides, shape = [rewriter.value(one) for one in call.args], shape_of(var)
    single = [math.prod(side.shape) == 1 for side in sides]
    blocked = [side.shape == shape and rewriter.is_blocked(side) for side in sides]
    if shape is None or not any(blocked) or not all(a or b for a, b in zip(single, blocked, strict=True)):
        return False
    arguments = [
        rewriter.blocked(side) if has_blocks else _flat(rewriter, side)
        for side, has_blocks in zip(sides, blocked, strict=True)
    ]
    rewriter.emit_blocked(var, rewriter.with_args(call, arguments))
    return True


def _flat(rewriter: Rewriter, value: Value) -> Any:
    plain = rewriter.plain(value)
    return rewriter.emit(relax.op.reshape(plain, ())) if value.shape else plain


def _extreme(rewriter: Rewriter, var: Any, call: Any) -> bool:
    """The largest or smallest number of all, whatever order they are in, if no channels were added."""
    data, attrs = rewriter.value(call.args[0]), call.attrs
    if attrs.axis is not None or attrs.keepdims or not rewriter.is_blocked(data):
        return False
    if len(data.shape) not in (3, 4) or data.shape[1] % rewriter.block:
        return False
    rewriter.bind_plain(var, rewriter.emit(rewriter.with_args(call, [rewriter.blocked(data)])))
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Conv:
    """A convolution of whole numbers."""

    data: Centred
    weight: Any
    window: Window
    groups: int


def _conv2d(rewriter: Rewriter, var: Any, call: Any) -> bool:
    attrs, weight, data = call.attrs, whole_numbers(call.args[1]), rewriter.value(call.args[0])
    known = (str(attrs.data_layout), str(attrs.kernel_layout)) in (("NCHW", "OIHW"), ("NCW", "OIW"))
    if weight is None or not isinstance(data, Centred) or not known or shape_of(var) is None:
        return False
    if str(var.ty.dtype) != "int32" or weight.dtype != np.int32 or weight.shape[0] < rewriter.lanes // 2:
        return False
    if weight.ndim == 3:
        weight = weight[:, :, None, :]  # a line is an image of one row
    window = window_of(attrs, weight.shape[2:])
    conv = _Conv(data=data, weight=weight, window=window, groups=int(attrs.groups))
    emitted = _dots(rewriter, conv) if _fits_dots(rewriter, conv) else _by_lanes(rewriter, conv)
    rewriter.bind(var, Value(shape=shape_of(var) or (), blocked=emitted))
    return True


def _fits_dots(rewriter: Rewriter, conv: _Conv) -> bool:
    enough = conv.weight.shape[1] >= rewriter.lanes or rewriter.lanes <= _NARROW_LANES
    return bool(rewriter.whole and conv.groups == 1 and enough and _is_narrow(conv.weight))


def _dots(rewriter: Rewriter, conv: _Conv) -> Any:
    data, zero = _for_dots(rewriter, conv.data)
    totals = conv.weight.sum(axis=(1, 2, 3), dtype=np.int32)
    packed = dots.pack_dots(conv.weight.astype(np.int8), rewriter.block)
    arguments = [rewriter.blocked(data), relax.const(packed), rewriter.channel_constant(totals, 0)]
    return _kernel(rewriter, wholes.conv2d_dots, arguments, zero, "conv2d_dots", window=conv.window)


def _by_lanes(rewriter: Rewriter, conv: _Conv) -> Any:
    """One product in every lane: for groups, images of few channels, and CPUs without dot products."""
    lanes, weight, narrow = rewriter.block, conv.weight, conv.data.narrow
    rest: dict[str, Any] = {}
    first = not rewriter.is_blocked(narrow) and narrow.shape[1] < lanes
    if conv.groups == weight.shape[0] and weight.shape[1] == 1:
        make, packed, name = compute.depthwise_conv2d, values.pack_depthwise_weight, "depthwise_conv2d"
    elif first and conv.groups == 1:
        make, packed, name = compute.conv2d_from_plain, values.pack_first_weight, "conv2d"
    else:
        make, packed, name = compute.conv2d, values.pack_weight, "conv2d"
    if name == "conv2d" and conv.groups > 1:
        inside, outside = weight.shape[1], weight.shape[0] // conv.groups
        rest["groups"] = Groups(count=conv.groups, inside=inside, outside=outside, lanes=lanes)
        arranged = rest["groups"].pack(weight)
    else:
        arranged = packed(weight, lanes)
    data = rewriter.plain(narrow) if make is compute.conv2d_from_plain else rewriter.blocked(narrow)
    arguments = [data, relax.const(arranged.astype(np.int32))]
    options = {"make": make, "window": conv.window, **rest}
    return _kernel(rewriter, wholes.convolution, arguments, conv.data.zero, name, **options)


def _matmul(rewriter: Rewriter, var: Any, call: Any) -> bool:
    data, matrix, left = rewriter.value(call.args[0]), whole_numbers(call.args[1]), shape_of(call.args[0])
    if not isinstance(data, Centred) or matrix is None or matrix.ndim != 2 or str(var.ty.dtype) != "int32":
        return False
    if left is None or len(left) < 2 or matrix.dtype != np.int32:
        return False
    panel = matrices.panel_width(int(np.prod(left[:-1])), matrix.shape[1], rewriter.lanes)
    if rewriter.whole and _is_narrow(matrix) and matrix.shape[0] % dots.FOUR == 0:
        emitted = _product_dots(rewriter, data, matrix, panel)
    else:
        emitted = _product(rewriter, data, matrix, panel)
    rewriter.bind_plain(var, emitted)
    return True


def _product_dots(rewriter: Rewriter, data: Centred, matrix: Any, panel: int) -> Any:
    whole, zero = _for_dots(rewriter, data)
    packed = dots.pack_dot_panels(np.ascontiguousarray(matrix.T).astype(np.int8), panel)
    totals = matrix.sum(axis=0, dtype=np.int32)
    arguments = [rewriter.plain(whole), relax.const(packed), relax.const(totals)]
    options = {"width": int(matrix.shape[1])}
    return _kernel(rewriter, wholes.product_dots, arguments, zero, "product_dots", **options)


def _product(rewriter: Rewriter, data: Centred, matrix: Any, panel: int) -> Any:
    packed = relax.const(values.pack_matrix(matrix, panel).astype(np.int32))
    arguments = [rewriter.plain(data), packed]
    return rewriter.kernel(matrices.product, arguments, "product", width=int(matrix.shape[1]))


def _for_dots(rewriter: Rewriter, data: Centred) -> tuple[Value, Any]:
    """The narrow data in the type that the instruction takes, and their zero point there."""
    if data.dtype == rewriter.whole:
        return data.narrow, data.zero
    by = dots.HALF if rewriter.whole == "uint8" else -dots.HALF
    other = rewriter.resigned(data.narrow, rewriter.whole)
    if isinstance(data.zero, int):
        return other, data.zero + by
    return other, rewriter.emit(relax.op.add(data.zero, relax.const(by, "int32")))


def _kernel(
    rewriter: Rewriter, function: Any, arguments: list[Any], zero: Any, name: str, **options: Any
) -> Any:
    if isinstance(zero, int):
        return rewriter.kernel(partial(function, **options), arguments, name, zero=zero)
    return rewriter.kernel(partial(function, **options), [*arguments, zero], name)


def _is_narrow(weight: Any) -> bool:
    limits = np.iinfo(np.int8)
    return bool(weight.min() >= limits.min and weight.max() <= limits.max)


def _size(expression: Any) -> int:
    """How many elements a tensor has; 0 where that is not known."""
    shape = shape_of(expression)
    return 0 if shape is None else int(np.prod(shape, dtype=np.int64))


RULES: dict[str, Rule] = {
    "relax.astype": _astype,
    "relax.round": elementwise,
    "relax.add": _with_channels,
    "relax.subtract": _subtract,
    "relax.nn.conv1d": _conv2d,
    "relax.nn.conv2d": _conv2d,
    "relax.matmul": _matmul,
}
LAST: dict[str, Rule] = {
    "relax.quantize": _rounding,
    "relax.dequantize": _rounding,
    "relax.multiply": _with_single,
    "relax.max": _extreme,
    "relax.min": _extreme,
}
"""For where no other rule applies."""
