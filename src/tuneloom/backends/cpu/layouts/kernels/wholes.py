"""Convolutions and products that a model itself has in whole numbers: 32-bit sums, exact to the last bit.

Data have a zero point, a number or a tensor of one element; weights have none left. Where dot
products compute them, what the zero point adds to each sum is taken away again afterwards.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tuneloom.backends.cpu.layouts.kernels import compute, dots
from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom.compiler.lazy import te, tirx, topi


def conv2d_dots(data: Any, weight: Any, totals: Any, *moving: Any, window: Window, zero: int = 0) -> Any:
    """Blocked data with weights as dots.pack_dots makes them; `totals` are the sums of weights."""
    origin = _at(moving, zero)
    sums, cols = dots.conv2d_sums(data, weight, window, origin)
    batch, out_blocks, rows, _, lanes = sums.shape
    return te.compute(
        (batch, out_blocks, rows, cols, lanes),
        lambda n, o, y, x, c: sums[n, o, y, x, c] - origin * totals[0, o, 0, 0, c],
        name="conv2d_whole",
    )


def product_dots(data: Any, panels: Any, totals: Any, *moving: Any, width: int, zero: int = 0) -> Any:
    """(…, rows, inner) times panels as dots.pack_dot_panels makes them: (…, rows, width)."""
    origin, sums = _at(moving, zero), dots.product_sums(data, panels)
    return te.compute(
        (*data.shape[:-1], width), lambda *at: sums[at] - origin * totals[at[-1]], name="product_whole"
    )


def to_dot_panels(data: Any, panel: int) -> Any:
    """(…, inner, width) to (…, width / panel, inner / 4, panel, 4); the last columns may repeat."""
    *lead, inner, width = (int(extent) for extent in data.shape)

    def value(*at: Any) -> Any:
        *batch, block, four, lane, each = at
        column = block * panel + lane
        return data[*batch, four * dots.FOUR + each, te.min(column, width - 1) if width % panel else column]

    shape = (*lead, -(-width // panel), inner // dots.FOUR, panel, dots.FOUR)
    return te.compute(shape, value, name="to_panels")


def product_of_two(
    data: Any, panels: Any, lines: Any, columns: Any, width: int, zeros: tuple[int, int], factor: float
) -> Any:
    """(…, rows, inner) times panels (…, width / panel, inner / 4, panel, 4): (…, rows, width), as floats.

    `lines` are the sums of the rows of the data, `columns` those of the columns of the panels, each with
    others beside them; `zeros` the zero points of both.
    """
    sums = dots.product_sums(data, panels)
    first, second = (tirx.const(zero, "int32") for zero in zeros)
    both = tirx.const(int(data.shape[-1]) * zeros[0] * zeros[1], "int32")

    def value(*at: Any) -> Any:
        *lead, row, column = at
        moved = second * lines[*lead, row, 0] + first * columns[*lead, 0, column] - both
        return (sums[at] - moved).astype("float32") * tirx.const(factor, "float32")

    return te.compute((*data.shape[:-1], width), value, name="product_scaled")


def convolution(
    data: Any, weight: Any, *moving: Any, make: Callable[..., Any], window: Window, zero: int = 0, **rest: Any
) -> Any:
    """A convolution as `make` has it for floats, of 8-bit data with 32-bit weights."""
    if len(data.shape) == 3:
        data = topi.expand_dims(data, 2)
    origin = _at(moving, zero)
    padded = compute.pad(data, window, (2, 3), value=origin)
    wide = te.compute(padded.shape, lambda *at: padded[at].astype("int32") - origin, name="wide")
    return make(wide, weight, replace(window, padding=(0, 0, 0, 0)), **rest)


def _at(moving: tuple[Any, ...], zero: int) -> Any:
    """The zero point in 32 bits; the tensor that holds it, if there is one, has one element."""
    return moving[0][(0,) * len(moving[0].shape)] if moving else tirx.const(zero, "int32")
