"""Products of bfloat16 numbers, two of which one instruction multiplies and adds for every lane.

Data are rounded where they enter a product, weights when it is compiled; sums are in single precision.
A number is the upper half of one in single precision, as a 16-bit pattern.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.tuners.tvm.layouts import compute
from tuneloom.tuners.tvm.layouts.matrices import padded_rows
from tuneloom.tuners.tvm.layouts.values import Array, blocks
from tuneloom.tuners.tvm.layouts.windows import Window

TWO = 2
Halves = NDArray[np.uint16]


def halves(data: Any) -> Any:
    """Numbers rounded to bfloat16, ties to even."""
    from tvm import te, tirx

    def value(*at: Any) -> Any:
        bits = tirx.reinterpret("uint32", data[at])
        even = (bits >> tirx.const(16, "uint32")) & tirx.const(1, "uint32")
        return ((bits + tirx.const(0x7FFF, "uint32") + even) >> tirx.const(16, "uint32")).astype("uint16")

    return te.compute(data.shape, value, name="halves")


def _single(half: Any) -> Any:
    """The number in single precision that a pattern stands for."""
    from tvm import tirx

    return tirx.reinterpret("float32", half.astype("uint32") << tirx.const(16, "uint32"))


def conv2d_pairs(data: Any, weight: Any, window: Window) -> Any:
    """Blocked data with weights (out blocks, in blocks, kh, kw, in / 2, out, 2), as blocked numbers."""
    from tvm import te

    batch, _, height, width, _ = data.shape
    out_blocks, in_blocks, _, _, twos, lanes, _ = weight.shape
    padded = compute.pad(data, window, (2, 3), value=0)
    rows, cols = window.output_size(int(height), int(width))
    made = compute.whole_columns(cols)
    k, kh = te.reduce_axis((0, in_blocks), name="k"), te.reduce_axis((0, window.kernel[0]), name="kh")
    kw, kf = te.reduce_axis((0, window.kernel[1]), name="kw"), te.reduce_axis((0, twos), name="kf")
    ki = te.reduce_axis((0, TWO), name="ki")

    def value(n: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
        x = x if made == cols else te.min(x, cols - 1)
        there = padded[n, k, *window.place(y, x, kh, kw), kf * TWO + ki]
        return te.sum(_single(there) * _single(weight[o, k, kh, kw, kf, c, ki]), axis=[k, kh, kw, kf, ki])

    sums = te.compute((batch, out_blocks, rows, made, lanes), value, name="conv2d_pairs")
    if made == cols:
        return sums
    return te.compute((batch, out_blocks, rows, cols, lanes), lambda *at: sums[at], name="conv2d_trimmed")


def product_pairs(data: Any, panels: Any, width: int) -> Any:
    """(…, rows, inner) times panels (width / panel, inner / 2, panel, 2): (…, rows, width)."""
    from tvm import te

    lead = [int(extent) for extent in data.shape[:-1]]
    count, twos, panel, _ = (int(extent) for extent in panels.shape)
    long = lead.index(max(lead))
    shape = [*lead, count * panel]
    shape[long] = padded_rows(lead[long])
    k, ki = te.reduce_axis((0, twos), name="k"), te.reduce_axis((0, TWO), name="ki")

    def value(*at: Any) -> Any:
        *rows, column = at
        if shape[long] != lead[long]:
            rows[long] = te.min(rows[long], lead[long] - 1)
        weight = panels[column // panel, k, column % panel, ki]
        return te.sum(_single(data[*rows, k * TWO + ki]) * _single(weight), axis=[k, ki])

    sums = te.compute(shape, value, name="product_pairs")
    if shape == [*lead, width]:
        return sums
    return te.compute((*lead, width), lambda *at: sums[at], name="product_trimmed")


def rounded(weight: Array) -> Halves:
    """Weights as patterns, rounded like data."""
    bits = np.ascontiguousarray(weight, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def pack_pairs(weight: Array, lanes: int) -> Halves:
    """(out, in, kh, kw) to (out blocks, in blocks, kh, kw, in / 2, out, 2), zeros where padded."""
    out, inside, kh, kw = weight.shape
    ob, ib = blocks(out, lanes), blocks(inside, lanes)
    padded = np.zeros((ob * lanes, ib * lanes, kh, kw), dtype=np.uint16)
    padded[:out, :inside] = rounded(weight)
    split = padded.reshape(ob, lanes, ib, lanes // TWO, TWO, kh, kw)
    return np.ascontiguousarray(split.transpose(0, 2, 5, 6, 3, 1, 4))


def pack_pair_panels(matrix: Array, panel: int) -> Halves:
    """(in, out) to (out blocks, in / 2, block, 2)."""
    inside, out = matrix.shape
    padded = np.zeros((blocks(out, panel) * panel, inside), dtype=np.uint16)
    padded[:out] = rounded(np.ascontiguousarray(matrix.T))
    return np.ascontiguousarray(padded.reshape(-1, panel, inside // TWO, TWO).transpose(0, 2, 1, 3))
