"""Products of 8-bit whole numbers, four of which one instruction multiplies and adds for every lane.

Data are `scale * (quantised - zero)`; weights have a scale for every channel of the result and no zero
point. Sums are 32-bit whole numbers. What the zero point adds to every sum is known when the weights are,
so it is part of the shift, and padding with the zero point stands for zeros.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.tvm.layouts import compute
from tuneloom.tuners.tvm.layouts.matrices import padded_rows
from tuneloom.tuners.tvm.layouts.values import Array, blocks
from tuneloom.tuners.tvm.layouts.windows import Window

FOUR = 4
HALF = 128
"""How far the two types of 8-bit whole numbers are apart."""
_LARGEST = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How floats become 8-bit whole numbers: divided by `step`, rounded, moved by `zero`."""

    step: float
    zero: int
    dtype: str

    @property
    def limits(self) -> tuple[int, int]:
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)


def quantised(data: Any, scale: Scale) -> Any:
    """Floats as 8-bit whole numbers, rounded to even and held within their type."""
    from tvm import te, tirx

    low, high = (tirx.const(limit, "float32") for limit in scale.limits)
    zero, per_step = tirx.const(scale.zero, "float32"), tirx.const(1.0 / scale.step, "float32")

    def value(*at: Any) -> Any:
        moved = tirx.nearbyint(data[at] * per_step) + zero
        return te.max(te.min(moved, high), low).astype(scale.dtype)

    return te.compute(data.shape, value, name="quantised")


def restored(data: Any, scale: Scale) -> Any:
    """The floats that 8-bit whole numbers stand for."""
    from tvm import te, tirx

    zero, step = tirx.const(scale.zero, "float32"), tirx.const(scale.step, "float32")
    return te.compute(data.shape, lambda *at: (data[at].astype("float32") - zero) * step, name="restored")


def resigned(data: Any, dtype: str) -> Any:
    """8-bit whole numbers moved by 128 into the other type, with or without a sign."""
    from tvm import te

    by = HALF if dtype == "uint8" else -HALF
    return te.compute(data.shape, lambda *at: (data[at].astype("int16") + by).astype(dtype), name="resigned")


def conv2d_dots(data: Any, weight: Any, factor: Any, shift: Any, window: Window, zero: int) -> Any:
    """Blocked data with weights (out blocks, in blocks, kh, kw, in / 4, out, 4), as blocked floats."""
    from tvm import te

    sums, cols = conv2d_sums(data, weight, window, zero)
    batch, out_blocks, rows, _, lanes = sums.shape
    return te.compute(
        (batch, out_blocks, rows, cols, lanes),
        lambda n, o, y, x, c: (
            sums[n, o, y, x, c].astype("float32") * factor[0, o, 0, 0, c] + shift[0, o, 0, 0, c]
        ),
        name="conv2d_scaled",
    )


def conv2d_sums(data: Any, weight: Any, window: Window, zero: Any) -> tuple[Any, int]:
    """The sums of a convolution, padded with the zero point, and how many columns of them count."""
    from tvm import te

    batch, _, height, width, _ = data.shape
    out_blocks, in_blocks, _, _, fours, lanes, _ = weight.shape
    padded = compute.pad(data, window, (2, 3), value=zero)
    rows, cols = window.output_size(int(height), int(width))
    made = compute.whole_columns(cols)
    k, kh = te.reduce_axis((0, in_blocks), name="k"), te.reduce_axis((0, window.kernel[0]), name="kh")
    kw, kf = te.reduce_axis((0, window.kernel[1]), name="kw"), te.reduce_axis((0, fours), name="kf")
    ki = te.reduce_axis((0, FOUR), name="ki")

    def value(n: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
        x = x if made == cols else te.min(x, cols - 1)
        there = padded[n, k, *window.place(y, x, kh, kw), kf * FOUR + ki]
        return te.sum(
            there.astype("int32") * weight[o, k, kh, kw, kf, c, ki].astype("int32"), axis=[k, kh, kw, kf, ki]
        )

    return te.compute((batch, out_blocks, rows, made, lanes), value, name="conv2d_dots"), cols


def product_dots(data: Any, panels: Any, factor: Any, shift: Any, width: int) -> Any:
    """(…, rows, inner) times panels (width / panel, inner / 4, panel, 4): (…, rows, width), as floats."""
    from tvm import te

    sums = product_sums(data, panels)
    return te.compute(
        (*data.shape[:-1], width),
        lambda *at: sums[at].astype("float32") * factor[at[-1]] + shift[at[-1]],
        name="product_scaled",
    )


def product_sums(data: Any, panels: Any) -> Any:
    """The sums of a product; there may be more rows and columns than the result has."""
    from tvm import te

    lead = [int(extent) for extent in data.shape[:-1]]
    count, fours, panel, _ = (int(extent) for extent in panels.shape)
    long = lead.index(max(lead))
    shape = [*lead, count * panel]
    shape[long] = padded_rows(lead[long])
    k, ki = te.reduce_axis((0, fours), name="k"), te.reduce_axis((0, FOUR), name="ki")

    def value(*at: Any) -> Any:
        *rows, column = at
        if shape[long] != lead[long]:
            rows[long] = te.min(rows[long], lead[long] - 1)
        weight = panels[column // panel, k, column % panel, ki].astype("int32")
        return te.sum(data[*rows, k * FOUR + ki].astype("int32") * weight, axis=[k, ki])

    return te.compute(shape, value, name="product_dots")


def quantise_weight(weight: Array) -> tuple[NDArray[np.int8], Array]:
    """Weights (out, …) as whole numbers, and the step of every channel of the result."""
    rest = tuple(range(1, weight.ndim))
    step = (np.maximum(np.abs(weight).max(axis=rest), 1e-12) / _LARGEST).astype(np.float32)
    whole = np.rint(weight / step.reshape(-1, *(1 for _ in rest)))
    return whole.astype(np.int8), step


def factor_and_shift(whole: NDArray[np.int8], step: Array, bias: Array | None, scale: Scale) -> list[Array]:
    """What a sum is multiplied by and what is added then, for every channel of the result."""
    factor = (step * scale.step).astype(np.float32)
    sums = whole.reshape(whole.shape[0], -1).sum(axis=1, dtype=np.int64)
    shift = -scale.zero * sums * factor.astype(np.float64)
    return [factor, (shift if bias is None else shift + bias).astype(np.float32)]


def pack_dots(whole: NDArray[np.int8], lanes: int) -> NDArray[np.int8]:
    """(out, in, kh, kw) to (out blocks, in blocks, kh, kw, in / 4, out, 4), zeros where padded."""
    out, inside, kh, kw = whole.shape
    ob, ib = blocks(out, lanes), blocks(inside, lanes)
    padded = np.zeros((ob * lanes, ib * lanes, kh, kw), dtype=np.int8)
    padded[:out, :inside] = whole
    split = padded.reshape(ob, lanes, ib, lanes // FOUR, FOUR, kh, kw)
    return np.ascontiguousarray(split.transpose(0, 2, 5, 6, 3, 1, 4))


def pack_dot_panels(whole: NDArray[np.int8], panel: int) -> NDArray[np.int8]:
    """(out, in) to (out blocks, in / 4, block, 4)."""
    out, inside = whole.shape
    padded = np.zeros((blocks(out, panel) * panel, inside), dtype=np.int8)
    padded[:out] = whole
    return np.ascontiguousarray(padded.reshape(-1, panel, inside // FOUR, FOUR).transpose(0, 2, 1, 3))
