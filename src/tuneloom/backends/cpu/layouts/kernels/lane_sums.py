"""Products of which one instruction adds several for every lane of a vector, whatever their type.

The last axis of packed weights holds the numbers that meet in one lane: as many as the instruction takes.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tuneloom.backends.cpu.layouts.kernels import compute
from tuneloom.backends.cpu.layouts.shapes.matrices import FEW_ROWS, padded_rows
from tuneloom.backends.cpu.layouts.shapes.values import blocks
from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom.compiler.lazy import te

Number = TypeVar("Number", bound=np.generic)
Multiply = Callable[[Any, Any], Any]
"""A number of the data times one of the weights, in the type of the sums."""


def conv2d_sums(
    data: Any, weight: Any, window: Window, padding: Any, multiply: Multiply, name: str
) -> tuple[Any, int]:
    """The sums of a convolution of blocked data, and how many columns of them count."""
    batch, _, height, width, _ = data.shape
    out_blocks, in_blocks, _, _, groups, lanes, each = weight.shape
    padded = compute.pad(data, window, (2, 3), value=padding)
    rows, cols = window.output_size(int(height), int(width))
    made = compute.whole_columns(cols)
    k, kh = te.reduce_axis((0, in_blocks), name="k"), te.reduce_axis((0, window.kernel[0]), name="kh")
    kw, kf = te.reduce_axis((0, window.kernel[1]), name="kw"), te.reduce_axis((0, groups), name="kf")
    ki = te.reduce_axis((0, each), name="ki")

    def value(n: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
        x = x if made == cols else te.min(x, cols - 1)
        there = padded[n, k, *window.place(y, x, kh, kw), kf * each + ki]
        return te.sum(multiply(there, weight[o, k, kh, kw, kf, c, ki]), axis=[k, kh, kw, kf, ki])

    return te.compute((batch, out_blocks, rows, made, lanes), value, name=name), cols


def product_sums(data: Any, panels: Any, multiply: Multiply, name: str, side: int = 1) -> Any:
    """The sums of a product; there may be more rows and columns than the result has.

    Panels may have leading axes as the data have, one matrix for each. With a `side`, they are computed in
    tiles of so many rows.
    """
    data = _in_whole_tiles(data, side)
    lead = [int(extent) for extent in data.shape[:-1]]
    *own, count, groups, panel, each = (int(extent) for extent in panels.shape)
    long = len(lead) - 1 if own else lead.index(max(lead))
    shape = [*lead, count * panel]
    shape[long] = padded_rows(lead[long])
    k, ki = te.reduce_axis((0, groups), name="k"), te.reduce_axis((0, each), name="ki")

    def value(*at: Any) -> Any:
        *rows, column = at
        if shape[long] != lead[long]:
            rows[long] = te.min(rows[long], lead[long] - 1)
        weight = panels[*rows[: len(own)], column // panel, k, column % panel, ki]
        return te.sum(multiply(data[*rows, k * each + ki], weight), axis=[k, ki])

    return te.compute(shape, value, name=name)


def _in_whole_tiles(data: Any, side: int) -> Any:
    """Data with rows for the rest of the last tile; the last row once more is as good as any."""
    rows = int(data.shape[-2]) if len(data.shape) > 1 else 1
    made = -(-rows // side) * side
    if made == rows or rows <= FEW_ROWS:
        return data
    shape = (*data.shape[:-2], made, data.shape[-1])
    return te.compute(shape, lambda *at: data[*at[:-2], te.min(at[-2], rows - 1), at[-1]], name="padded_rows")


def pack_blocks(weight: NDArray[Number], lanes: int, each: int) -> NDArray[Number]:
    """(out, in, kh, kw) to (out blocks, in blocks, kh, kw, in / each, out, each), zeros where padded."""
    out, inside, kh, kw = weight.shape
    ob, ib = blocks(out, lanes), blocks(inside, lanes)
    padded = np.zeros((ob * lanes, ib * lanes, kh, kw), dtype=weight.dtype)
    padded[:out, :inside] = weight
    split = padded.reshape(ob, lanes, ib, lanes // each, each, kh, kw)
    return np.ascontiguousarray(split.transpose(0, 2, 5, 6, 3, 1, 4))


def pack_panels(matrix: NDArray[Number], panel: int, each: int) -> NDArray[Number]:
    """(out, in) to (out blocks, in / each, block, each), zeros where padded."""
    out, inside = matrix.shape
    padded = np.zeros((blocks(out, panel) * panel, inside), dtype=matrix.dtype)
    padded[:out] = matrix
    return np.ascontiguousarray(padded.reshape(-1, panel, inside // each, each).transpose(0, 2, 1, 3))
