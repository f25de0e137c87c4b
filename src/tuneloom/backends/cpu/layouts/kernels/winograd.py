"""3×3 convolutions with 4×4 outputs at a time: 36 products per channel pair instead of 144.

The image is cut into overlapping 6×6 tiles; tiles and weights are transformed so that
the convolution becomes 36 independent matrix products; the products are transformed
back. The transforms are exact up to rounding.
"""

from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.kernels.compute import pad
from tuneloom.backends.cpu.layouts.shapes.values import Array, OpenConv, pack_weight
from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom.compiler.lazy import te, tirx

OUT, TILE = 4, 6
POINTS = TILE * TILE

_INPUT = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
_WEIGHT = np.array(
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ]
)
_OUTPUT = (
    (1, 1, 1, 1, 1, 0),
    (0, 1, -1, 2, -2, 0),
    (0, 1, 1, 4, 4, 0),
    (0, 1, -1, 8, -8, 1),
)

_TRANSFORM_COST, _TRANSFORM_COST_PER_LANE = 240, 16
"""Products a channel's transforms are worth, per tile: wide vectors gain less there than in products.

They were measured with four lanes (Neoverse N1) and with sixteen (Skylake), as was what follows.
"""
_NEAR_MB, _MOST_MB = 1.0, 20.0
_DISTANT_COST = 0.6
"""What they are worth more for each megabyte of transformed values above the near cache, times the square of
the lanes: the products wait for them."""
_CACHED_BYTES = 2_500_000
"""Weights larger than this are read from slow memory every time."""
_READING_COST = 1 / 16
"""What one byte from there costs, in products, times the square of the lanes.

One product was measured with four lanes (Neoverse N1). Wider vectors make more products in that
time, and more of such vectors wait.
"""
_WORTH = 0.8


def pays(conv: OpenConv, lanes: int) -> bool:
    """Whether this convolution is worth transforming for vectors of so many lanes."""
    window, (out, inside, kh, kw) = conv.window, conv.weight.shape
    simple = window.stride == (1, 1) and window.dilation == (1, 1) and (kh, kw) == (3, 3)
    if not simple or conv.groups != 1:
        return False
    rows, cols = conv.shape[-2:]
    direct = rows * cols * 9 * out * inside + reading(9 * out * inside, lanes)
    tiles = _tiles(rows) * _tiles(cols)
    changed = tiles * (POINTS * out * inside + transforming(tiles * (out + inside), lanes) * (out + inside))
    return bool(changed + reading(POINTS * out * inside, lanes) < _WORTH * direct)


def transforming(channels: int, lanes: int, points: int = POINTS) -> float:
    """What transforming one of so many channels of tiles costs, in products."""
    distant_mb = min(4e-6 * points * channels, _MOST_MB) - _NEAR_MB
    near = (_TRANSFORM_COST + _TRANSFORM_COST_PER_LANE * lanes) * points / POINTS
    return near + _DISTANT_COST * lanes**2 * max(0.0, distant_mb)


def reading(weights: int, lanes: int) -> float:
    """What reading weights costs, in products."""
    size = 4 * weights
    return _READING_COST * lanes**2 * size if size > _CACHED_BYTES else 0.0


def winograd_weight(weight: Array, lanes: int) -> Array:
    """(out, in, 3, 3) to (points, out blocks, in blocks, in, out)."""
    changed = np.einsum("ik,abkl,jl->abij", _WEIGHT, weight.astype(np.float64), _WEIGHT)
    packed = pack_weight(changed.astype(np.float32), lanes)
    ob, ib, _, _, inner, outer = packed.shape
    by_point = packed.transpose(2, 3, 0, 1, 4, 5).reshape(POINTS, ob, ib, inner, outer)
    return np.ascontiguousarray(by_point)


def winograd_input(data: Any, window: Window) -> Any:
    """Blocked data to (points, blocks, tiles, block)."""
    batch, blocks, height, width, lanes = data.shape
    rows, cols = window.output_size(int(height), int(width))
    down, across = _tiles(rows), _tiles(cols)
    count = int(batch) * down * across
    grown = window.padded_to(int(height), int(width), (down * OUT, across * OUT))
    padded = pad(data, grown, (2, 3))

    def line(i: Any, s: Any, o: Any, t: Any, c: Any) -> Any:
        n, t = (0, t) if int(batch) == 1 else (t // (down * across), t % (down * across))
        y, x = t // across * OUT, t % across * OUT
        return combine(_INPUT, i, lambda r: padded[n, o, y + r, x + s, c])

    lines = te.compute((TILE, TILE, blocks, count, lanes), line, name="winograd_lines")
    return te.compute(
        (POINTS, blocks, count, lanes),
        lambda p, o, t, c: combine(_INPUT, p % TILE, lambda s: lines[p // TILE, s, o, t, c]),
        name="winograd_input",
    )


def winograd_product(data: Any, weight: Any) -> Any:
    """One matrix product for every point."""
    points, in_blocks, tiles, inner = data.shape
    _, out_blocks, _, _, lanes = weight.shape
    k, ki = te.reduce_axis((0, in_blocks), name="k"), te.reduce_axis((0, inner), name="ki")
    return te.compute(
        (points, out_blocks, tiles, lanes),
        lambda p, o, t, c: te.sum(data[p, k, t, ki] * weight[p, o, k, ki, c], axis=[k, ki]),
        name="winograd_product",
    )


def winograd_output(data: Any, rows: int, cols: int) -> Any:
    """Products back to a blocked image."""
    _, blocks, tiles, lanes = data.shape
    down, across = _tiles(rows), _tiles(cols)
    batch = int(tiles) // (down * across)
    lines = te.compute(
        (OUT, TILE, blocks, tiles, lanes),
        lambda i, s, o, t, c: combine(_OUTPUT, i, lambda r: data[r * TILE + s, o, t, c]),
        name="winograd_lines",
    )

    def point(n: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
        tile = y // OUT * across + x // OUT + (n * down * across if batch > 1 else 0)
        return combine(_OUTPUT, x % OUT, lambda s: lines[y % OUT, s, o, tile, c])

    return te.compute((batch, blocks, rows, cols, lanes), point, name="winograd_output")


def _tiles(extent: int) -> int:
    return -(-extent // OUT)


def combine(matrix: tuple[tuple[float, ...], ...], row: Any, term: Any) -> Any:
    """The row of a matrix times terms; which row is known once loops are unrolled."""
    sums = [_weighted(coefficients, term) for coefficients in matrix]
    result = sums[-1]
    for number in range(len(sums) - 2, -1, -1):
        result = tirx.if_then_else(row == number, sums[number], result)
    return result


def _weighted(coefficients: tuple[float, ...], term: Any) -> Any:
    total = None
    for position, factor in enumerate(coefficients):
        if factor:
            one = term(position)
            scaled = one if factor == 1 else one * tirx.const(factor, "float32")
            total = scaled if total is None else total + scaled
    return total
