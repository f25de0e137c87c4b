"""Products of bfloat16 numbers, two of which one instruction multiplies and adds for every lane.

Data are rounded where they enter a product, weights when it is compiled; sums are in single precision.
A number is the upper half of one in single precision, as a 16-bit pattern.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.backends.cpu.layouts.kernels import lane_sums
from tuneloom.backends.cpu.layouts.shapes.values import Array
from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom.compiler.lazy import te, tirx

TWO = 2
Halves = NDArray[np.uint16]


def halves(data: Any) -> Any:
    """Numbers rounded to bfloat16, ties to even."""

    def value(*at: Any) -> Any:
        bits = tirx.reinterpret("uint32", data[at])
        even = (bits >> tirx.const(16, "uint32")) & tirx.const(1, "uint32")
        return ((bits + tirx.const(0x7FFF, "uint32") + even) >> tirx.const(16, "uint32")).astype("uint16")

    return te.compute(data.shape, value, name="halves")


def _single(half: Any) -> Any:
    """The number in single precision that a pattern stands for."""
    return tirx.reinterpret("float32", half.astype("uint32") << tirx.const(16, "uint32"))


def conv2d_pairs(data: Any, weight: Any, window: Window) -> Any:
    """Blocked data with weights (out blocks, in blocks, kh, kw, in / 2, out, 2), as blocked numbers."""
    sums, cols = lane_sums.conv2d_sums(data, weight, window, 0, _times, "conv2d_pairs")
    batch, out_blocks, rows, made, lanes = sums.shape
    if int(made) == cols:
        return sums
    return te.compute((batch, out_blocks, rows, cols, lanes), lambda *at: sums[at], name="conv2d_trimmed")


def product_pairs(data: Any, panels: Any, width: int, side: int = 1) -> Any:
    """(…, rows, inner) times panels (width / panel, inner / 2, panel, 2): (…, rows, width)."""
    sums = lane_sums.product_sums(data, panels, _times, "product_pairs", side)
    shape = [*(int(extent) for extent in data.shape[:-1]), width]
    if [int(extent) for extent in sums.shape] == shape:
        return sums
    return te.compute(shape, lambda *at: sums[at], name="product_trimmed")


def _times(data: Any, weight: Any) -> Any:
    return _single(data) * _single(weight)


def rounded(weight: Array) -> Halves:
    """Weights as patterns, rounded like data."""
    bits = np.ascontiguousarray(weight, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def pack_pairs(weight: Array, lanes: int) -> Halves:
    """(out, in, kh, kw) to (out blocks, in blocks, kh, kw, in / 2, out, 2), zeros where padded."""
    return lane_sums.pack_blocks(rounded(weight), lanes, TWO)


def pack_pair_panels(matrix: Array, panel: int) -> Halves:
    """(in, out) to (out blocks, in / 2, block, 2)."""
    return lane_sums.pack_panels(rounded(matrix.T), panel, TWO)
