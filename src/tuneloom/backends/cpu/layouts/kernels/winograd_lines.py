"""Convolutions along one axis, four outputs at a time: 8 products instead of 20 for five taps.

As with 3×3 windows (winograd.py), pieces of the data that overlap and the weights are transformed so that
the convolution becomes independent matrix products, one for each point.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.kernels.compute import pad
from tuneloom.backends.cpu.layouts.kernels.winograd import OUT, TransformCosts, combine
from tuneloom.backends.cpu.layouts.shapes.matrices import padded_rows
from tuneloom.backends.cpu.layouts.shapes.values import Array, OpenConv, pack_weight
from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom.compiler.lazy import te

_POINTS = {3: (0, 1, -1, 2, -2), 5: (0, 1, -1, 2, -2, 0.5, -0.5)}
"""Where the polynomials of a window are evaluated, beside infinity: numbers that floats hold exactly."""
_WORTH = 0.8
DOWN, ACROSS = "winograd_down_", "winograd_across_"
"""What the names of transforms begin with, for their schedules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTransform:
    """A window of one row or one column."""

    taps: int
    down: bool
    input: tuple[tuple[float, ...], ...]
    weight: Array
    output: tuple[tuple[float, ...], ...]

    @property
    def prefix(self) -> str:
        return DOWN if self.down else ACROSS

    def tiles(self, size: tuple[int, int]) -> tuple[int, int]:
        """How many pieces a line of the result has, and how many lines there are."""
        along, beside = size if self.down else size[::-1]
        return -(-along // OUT), beside


def line_of(conv: OpenConv, costs: TransformCosts) -> LineTransform | None:
    """How to transform a convolution along one axis; None if it is another one or not worth it."""
    window, (out, inside, kh, kw) = conv.window, conv.weight.shape
    taps = max(kh, kw)
    plain = window.stride == (1, 1) and window.dilation == (1, 1) and conv.groups == 1
    if not plain or min(kh, kw) != 1 or taps not in _POINTS:
        return None
    line = LineTransform(taps=taps, down=kh > kw, **_matrices(taps))
    along, beside = line.tiles(_size(conv))
    tiles, points = padded_rows(along * beside), len(line.input)
    size = int(np.prod(_size(conv))) * out * inside * taps
    direct = size + costs.reading(taps * out * inside)
    around = costs.transforming(tiles * (out + inside), points) * (out + inside)
    changed = tiles * (points * out * inside + around) + costs.reading(points * out * inside)
    return line if changed < _WORTH * direct else None


def _size(conv: OpenConv) -> tuple[int, int]:
    """Rows and columns of the result; a line has one row."""
    *_, rows, cols = (1, *conv.shape[2:])
    return rows, cols


def _matrices(taps: int) -> dict[str, Any]:
    """Toom and Cook's matrices for so many taps and four outputs: of data, weights and products."""
    points = _POINTS[taps]
    size = len(points) + 1
    data, weight, result = (np.zeros(shape) for shape in ((size, size), (size, taps), (OUT, size)))
    for row, point in enumerate(points):
        others = [one for one in points if one != point]
        data[row, :-1] = np.poly(others)[::-1]
        weight[row] = np.power(float(point), range(taps)) / np.prod([point - one for one in others])
        result[:, row] = np.power(float(point), range(OUT))
    data[-1] = np.poly(points)[::-1]
    weight[-1, -1] = result[-1, -1] = 1.0
    return {"input": tuple(map(tuple, data)), "weight": weight, "output": tuple(map(tuple, result))}


def line_weight(weight: Array, line: LineTransform, lanes: int) -> Array:
    """(out, in, taps, 1) or (out, in, 1, taps) to (points, out blocks, in blocks, in, out)."""
    flat = weight.reshape(*weight.shape[:2], line.taps).astype(np.float64)
    changed = np.einsum("pk,abk->abp", line.weight, flat)[..., None]
    packed = pack_weight(changed.astype(np.float32), lanes)
    return np.ascontiguousarray(packed.transpose(2, 3, 0, 1, 4, 5)[:, 0])


def line_input(data: Any, window: Window, line: LineTransform) -> Any:
    """Blocked data to (points, blocks, tiles, block); the last tiles may repeat."""
    batch, blocks, height, width, lanes = data.shape
    rows, cols = window.output_size(int(height), int(width))
    along, beside = line.tiles((rows, cols))
    whole = (along * OUT, cols) if line.down else (rows, along * OUT)
    padded = pad(data, window.padded_to(int(height), int(width), whole), (2, 3))
    count = int(batch) * along * beside

    def point(p: Any, o: Any, t: Any, c: Any) -> Any:
        tile = t if padded_rows(count) == count else te.min(t, count - 1)
        n, tile = (0, tile) if int(batch) == 1 else (tile // (along * beside), tile % (along * beside))
        at, other = (tile, 0) if beside == 1 else (tile % along, tile // along)
        start = at * OUT

        def term(k: int) -> Any:
            y, x = (start + k, other) if line.down else (other, start + k)
            return padded[n, o, y, x, c]

        return combine(line.input, p, term)

    shape = (len(line.input), blocks, padded_rows(count), lanes)
    return te.compute(shape, point, name=f"{line.prefix}input")


def line_output(data: Any, line: LineTransform, batch: int, rows: int, cols: int) -> Any:
    """Products back to a blocked image."""
    _, blocks, _, lanes = data.shape
    along, beside = line.tiles((rows, cols))

    def point(n: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
        at, other = (y, x) if line.down else (x, y)
        tile = at // OUT
        if beside > 1:
            tile = tile + other * along
        if batch > 1:
            tile = tile + n * (along * beside)
        return combine(line.output, at % OUT, lambda p: data[p, o, tile, c])

    return te.compute((batch, blocks, rows, cols, lanes), point, name=f"{line.prefix}output")
