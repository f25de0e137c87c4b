"""Convolutions and products of whole numbers, exactly as their runtime computes them.

Sums are 32-bit whole numbers; only a result that is quantised again is scaled, in single precision.
"""

from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import dtype_of, shape_of
from tuneloom.tuners.tvm.importing.onnx.converters.making import own


def _conv_integer(bb: Any, inputs: Any, attr: Any) -> Any:
    """x, w, and the zero points of both."""
    x, w, x_zero, w_zero = _filled(inputs, 4)
    return convolved(bb, centred(bb, x, x_zero), centred(bb, w, w_zero, channel=0), attr)


def _linear_conv(bb: Any, inputs: Any, attr: Any) -> Any:
    """x, w and y with scales and zero points, and a bias in units of x times w."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias = _filled(inputs, 9)
    sums = convolved(bb, centred(bb, x, x_zero), centred(bb, w, w_zero, channel=0), attr)
    rank = len(shape_of(sums))
    if bias is not None:
        sums = bb.emit(relax.op.add(sums, along(bb, bias, 1, rank)))
    scale = ratio(bb, x_scale, along(bb, w_scale, 1, rank), y_scale)
    return requantised(bb, sums, scale, y_zero)


def _linear_matmul(bb: Any, inputs: Any, attr: Any) -> Any:
    """a, b and y with scales and zero points."""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = _filled(inputs, 8)
    sums = bb.emit(relax.op.matmul(centred(bb, a, a_zero), centred(bb, b, b_zero)))
    return requantised(bb, sums, ratio(bb, a_scale, b_scale, y_scale), y_zero)


def _dynamic(bb: Any, inputs: Any, attr: Any) -> Any:
    """Steps that reach from the least to the greatest value; of nothing but zeros they are 1."""
    x, op, none = inputs[0], relax.op, relax.const(np.float32(0))
    most = bb.emit(op.maximum(bb.emit(op.max(x)), none))
    least = bb.emit(op.minimum(bb.emit(op.min(x)), none))
    reach = bb.emit(op.subtract(most, least))
    divided = bb.emit(op.divide(reach, relax.const(np.float32(255))))
    flat = bb.emit(op.equal(reach, none))
    scale = bb.emit(op.where(flat, relax.const(np.float32(1)), divided))
    moved = bb.emit(op.negative(bb.emit(op.divide(least, scale))))
    zero = bb.emit(op.astype(bb.emit(op.round(bb.emit(op.clip(moved, 0, 255)))), "uint8"))
    return relax.Tuple([bb.emit(op.quantize(x, scale, zero, axis=-1, out_dtype="uint8")), scale, zero])


def _filled(inputs: Any, count: int) -> list[Any]:
    given = list(inputs)
    return [*given, *([None] * (count - len(given)))]


def centred(bb: Any, value: Any, zero: Any, channel: int | None = None) -> Any:
    """The value less its zero point, in 32 bits."""
    wide = bb.emit(relax.op.astype(value, "int32"))
    if zero is None:
        return wide
    offset = bb.emit(relax.op.astype(zero, "int32"))
    if channel is not None:
        offset = along(bb, offset, channel, len(shape_of(wide)))
    return bb.emit(relax.op.subtract(wide, offset))


def along(bb: Any, value: Any, axis: int, rank: int) -> Any:
    """A vector laid along one axis; a single number stays one."""
    size = int(np.prod(shape_of(value), dtype=np.int64))
    if size == 1:
        return bb.emit(relax.op.reshape(value, ()))
    return bb.emit(relax.op.reshape(value, [size if place == axis else 1 for place in range(rank)]))


def convolved(bb: Any, x: Any, w: Any, attr: Any) -> Any:
    """A convolution of whole numbers in 32 bits; raises ValueError unless it is over lines or images."""
    spatial = len(shape_of(x)) - 2
    if spatial not in (1, 2):
        raise ValueError(f"a convolution of whole numbers over {spatial} axes")
    convolve = relax.op.nn.conv2d if spatial == 2 else relax.op.nn.conv1d
    return bb.emit(
        convolve(
            x,
            w,
            strides=attr.get("strides", 1),
            padding=_pads(x, w, attr, spatial),
            dilation=attr.get("dilations", 1),
            groups=attr.get("group", 1),
            out_dtype="int32",
        )
    )


def _pads(x: Any, w: Any, attr: Any, spatial: int) -> Any:
    """All paddings, computed where the node says only that sizes stay the same."""
    mode = attr.get("auto_pad", b"NOTSET")
    mode = mode.decode() if isinstance(mode, bytes) else mode
    if mode in ("NOTSET", ""):
        return attr.get("pads", [0] * (2 * spatial))
    before, after = [], []
    for axis in range(spatial):
        size, kernel = shape_of(x)[axis + 2], shape_of(w)[axis + 2]
        stride = attr.get("strides", [1] * spatial)[axis]
        reach = (kernel - 1) * attr.get("dilations", [1] * spatial)[axis] + 1
        total = max((-(-size // stride) - 1) * stride + reach - size, 0) if mode != "VALID" else 0
        small, large = total // 2, total - total // 2
        before.append(small if mode != "SAME_LOWER" else large)
        after.append(large if mode != "SAME_LOWER" else small)
    return [*before, *after]


def ratio(bb: Any, one: Any, other: Any, result: Any) -> Any:
    """By what sums of products are multiplied: the scales of both sides over that of the result."""
    single = [bb.emit(relax.op.astype(value, "float32")) for value in (one, other, result)]
    first, last = (bb.emit(relax.op.reshape(value, ())) for value in (single[0], single[2]))
    return bb.emit(relax.op.divide(bb.emit(relax.op.multiply(first, single[1])), last))


def requantised(bb: Any, sums: Any, scale: Any, zero: Any) -> Any:
    """Sums scaled, and rounded to the type of the zero point."""
    return rounded_to(bb, bb.emit(relax.op.multiply(bb.emit(relax.op.astype(sums, "float32")), scale)), zero)


def rounded_to(bb: Any, scaled: Any, zero: Any) -> Any:
    """Floats rounded to even, moved to the zero point and held within its type."""
    kind = dtype_of(zero)
    limits = np.iinfo(kind)
    origin = bb.emit(relax.op.reshape(bb.emit(relax.op.astype(zero, "float32")), ()))
    moved = bb.emit(relax.op.add(bb.emit(relax.op.round(scaled)), origin))
    return bb.emit(relax.op.astype(bb.emit(relax.op.clip(moved, int(limits.min), int(limits.max))), kind))


QUANTISED = {
    "ConvInteger": own(_conv_integer),
    "QLinearConv": own(_linear_conv),
    "QLinearMatMul": own(_linear_matmul),
    "DynamicQuantizeLinear": own(_dynamic),
}
