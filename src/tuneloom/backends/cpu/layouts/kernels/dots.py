"""Products of 8-bit whole numbers, four of which one instruction multiplies and adds for every lane.

Data are `scale * (quantised - zero)`; weights have a scale for every channel of the result and no zero
point. Sums are 32-bit whole numbers. What the zero point adds to every sum is known when the weights are,
so it is part of the shift, and padding with the zero point stands for zeros.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.backends.cpu.layouts.kernels import lane_sums
from tuneloom.backends.cpu.layouts.shapes.values import Array
from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom.backends.quantising import Scale
from tuneloom.compiler.lazy import te, tirx

FOUR = 4
HALF = 128
"""How far the two types of 8-bit whole numbers are apart."""
_LARGEST = 127


def quantised(data: Any, scale: Scale) -> Any:
    """Floats as 8-bit whole numbers, rounded to even and held within their type.

    TVM's `round` rounds to even, as its `nearbyint` does, which it can't compute in vectors.
    """
    low, high = (tirx.const(limit, "float32") for limit in scale.limits)
    zero, per_step = tirx.const(scale.zero, "float32"), tirx.const(1.0 / scale.step, "float32")

    def value(*at: Any) -> Any:
        moved = tirx.round(data[at] * per_step) + zero
        return te.max(te.min(moved, high), low).astype(scale.dtype)

    return te.compute(data.shape, value, name="quantised")


def restored(data: Any, scale: Scale) -> Any:
    """The floats that 8-bit whole numbers stand for."""
    zero, step = tirx.const(scale.zero, "float32"), tirx.const(scale.step, "float32")
    return te.compute(data.shape, lambda *at: (data[at].astype("float32") - zero) * step, name="restored")


def resigned(data: Any, dtype: str) -> Any:
    """8-bit whole numbers moved by 128 into the other type, with or without a sign."""
    by = HALF if dtype == "uint8" else -HALF
    return te.compute(data.shape, lambda *at: (data[at].astype("int16") + by).astype(dtype), name="resigned")


def conv2d_dots(data: Any, weight: Any, factor: Any, shift: Any, window: Window, zero: int) -> Any:
    """Blocked data with weights (out blocks, in blocks, kh, kw, in / 4, out, 4), as blocked floats."""
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
    return lane_sums.conv2d_sums(data, weight, window, zero, _times, "conv2d_dots")


def product_dots(data: Any, panels: Any, factor: Any, shift: Any, width: int, side: int = 1) -> Any:
    """(…, rows, inner) times panels (width / panel, inner / 4, panel, 4): (…, rows, width), as floats."""
    sums = product_sums(data, panels, side)
    return te.compute(
        (*data.shape[:-1], width),
        lambda *at: sums[at].astype("float32") * factor[at[-1]] + shift[at[-1]],
        name="product_scaled",
    )


def product_sums(data: Any, panels: Any, side: int = 1) -> Any:
    """The sums of a product; there may be more rows and columns than the result has."""
    return lane_sums.product_sums(data, panels, _times, "product_dots", side)


def _times(data: Any, weight: Any) -> Any:
    return data.astype("int32") * weight.astype("int32")


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
    return lane_sums.pack_blocks(whole, lanes, FOUR)


def pack_dot_panels(whole: NDArray[np.int8], panel: int) -> NDArray[np.int8]:
    """(out, in) to (out blocks, in / 4, block, 4)."""
    return lane_sums.pack_panels(whole, panel, FOUR)
