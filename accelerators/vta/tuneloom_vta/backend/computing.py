"""The loops around the accelerator, and those of its own kernels where the CPU runs them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.backends.cpu.layouts.kernels.dots import HALF, Scale
from tuneloom.backends.cpu.layouts.shapes.windows import Window

PLANES = 4
_BITS = 8


def packed_weight(weight: NDArray[np.int8], block_in: int, block_out: int) -> NDArray[np.int8]:
    """(out, in, kh, kw) to (out blocks, in blocks, kh, kw, out, in), zeros where padded."""
    out, channels, kernel, _ = weight.shape
    room = ((0, -out % block_out), (0, -channels % block_in), (0, 0), (0, 0))
    whole = np.pad(weight, room)
    shape = (whole.shape[0] // block_out, block_out, whole.shape[1] // block_in, block_in, kernel, kernel)
    return np.ascontiguousarray(whole.reshape(shape).transpose(0, 2, 4, 5, 1, 3))


def blocked_data(data: Any, channels: int, window: Window, scale: Scale, block: int) -> Any:
    """Blocks of the CPU (1, blocks, rows, columns, lanes) as blocks of the accelerator, padded."""
    from tvm import te, tirx

    _, _, height, width, lanes = (int(extent) for extent in data.shape)
    top, left, bottom, right = window.padding
    shape = (-(-channels // block), height + top + bottom, width + left + right, block)

    def value(k: Any, y: Any, x: Any, c: Any) -> Any:
        channel, row, column = k * block + c, y - top, x - left
        inside = tirx.all(row >= 0, row < height, column >= 0, column < width, channel < channels)
        there = data[0, channel // lanes, row, column, channel % lanes]
        return tirx.if_then_else(inside, _signed(there, scale), _zero(scale))

    return te.compute(shape, value, name="to_vta")


def blocked_rows(data: Any, rows: int, scale: Scale, block: int) -> Any:
    """(…, rows, inner) as blocks of the accelerator: an image of one column."""
    from tvm import te, tirx, topi

    inner = int(data.shape[-1])
    flat = topi.reshape(data, (rows, inner))

    def value(k: Any, y: Any, _x: Any, c: Any) -> Any:
        return tirx.if_then_else(k * block + c < inner, _signed(flat[y, k * block + c], scale), _zero(scale))

    return te.compute((-(-inner // block), rows, 1, block), value, name="to_vta")


def _signed(value: Any, scale: Scale) -> Any:
    return value if scale.dtype == "int8" else (value.astype("int16") - HALF).astype("int8")


def _zero(scale: Scale) -> Any:
    from tvm import tirx

    return tirx.const(scale.zero if scale.dtype == "int8" else scale.zero - HALF, "int8")


def planes_of_sums(data: Any, weight: Any, stride: int) -> Any:
    """What the accelerator leaves in memory: the sums of a convolution as four planes of bytes."""
    from tvm import te, tirx

    blocks_in, height, width, block_in = data.shape
    blocks_out, _, kernel, _, block_out, _ = weight.shape
    rows, columns = (int(height) - int(kernel)) // stride + 1, (int(width) - int(kernel)) // stride + 1
    k, kh = te.reduce_axis((0, blocks_in), name="k"), te.reduce_axis((0, kernel), name="kh")
    kw, ki = te.reduce_axis((0, kernel), name="kw"), te.reduce_axis((0, block_in), name="ki")

    def summed(o: Any, y: Any, x: Any, c: Any) -> Any:
        there = data[k, y * stride + kh, x * stride + kw, ki].astype("int32")
        return te.sum(there * weight[o, k, kh, kw, c, ki].astype("int32"), axis=[k, kh, kw, ki])

    sums = te.compute((blocks_out, rows, columns, block_out), summed, name="sums")

    def byte(p: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
        return tirx.shift_right(sums[o, y, x, c], p * _BITS).astype("int8")

    return te.compute((PLANES, blocks_out, rows, columns, block_out), byte, name="planes")


def _whole(planes: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
    """A sum from its bytes."""
    from tvm import tirx

    low = [planes[p, o, y, x, c].astype("uint8").astype("int32") for p in range(PLANES - 1)]
    total = tirx.shift_left(planes[PLANES - 1, o, y, x, c].astype("int32"), tirx.const(24, "int32"))
    for plane, byte in enumerate(low):
        total = total + tirx.shift_left(byte, tirx.const(_BITS * plane, "int32"))
    return total


def blocked_floats(planes: Any, factor: Any, shift: Any, *moved: Any, channels: int, lanes: int) -> Any:
    """Blocks of floats as the CPU's own kernel gives them."""
    from tvm import te, tirx

    _, _, rows, columns, block = (int(extent) for extent in planes.shape)

    def value(n: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
        channel = tirx.min(o * lanes + c, channels - 1)
        total = _whole(planes, channel // block, y, x, channel % block)
        total = total + moved[0][channel] if moved else total
        return total.astype("float32") * factor[0, o, 0, 0, c] + shift[0, o, 0, 0, c]

    return te.compute((1, -(-channels // lanes), rows, columns, lanes), value, name="from_vta")


def row_floats(planes: Any, factor: Any, shift: Any, *moved: Any, shape: tuple[int, ...]) -> Any:
    """Rows of floats as the CPU's own kernel gives them."""
    from tvm import te, topi

    block, rows = int(planes.shape[-1]), int(np.prod(shape[:-1]))

    def value(y: Any, c: Any) -> Any:
        total = _whole(planes, c // block, y, 0, c % block)
        total = total + moved[0][c] if moved else total
        return total.astype("float32") * factor[c] + shift[c]

    return topi.reshape(te.compute((rows, shape[-1]), value, name="from_vta"), shape)
