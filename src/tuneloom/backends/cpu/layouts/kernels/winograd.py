"""3×3 convolutions with 4×4 outputs at a time: 36 products per channel pair instead of 144.

The image is cut into overlapping 6×6 tiles; tiles and weights are transformed so that
the convolution becomes 36 independent matrix products; the products are transformed
back. The transforms are exact up to rounding.
"""

from dataclasses import dataclass
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
"""Products a channel's transforms are worth, per tile: wide vectors gain less there than in products."""
_NEAR_MB = 1.0
"""So many megabytes of transformed values stay in the near cache."""
_WORTH = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformCosts:
    """What transforming convolutions costs on a CPU, in multiplications of a direct one.

    Drawn from measurements of four lanes (Neoverse N1) and sixteen: Skylake, and a Xeon with tile registers,
    whose memory keeps up with far more of them (`benchmarks/winograd.py`).
    """

    lanes: int
    megabyte: float
    """What a channel's transforms cost more for each megabyte that is not near: products wait for it."""
    most_mb: float
    """More megabytes than this cost no more."""
    cached_bytes: float
    """Weights larger than this are read from slow memory every time."""
    byte: float
    """What reading a byte of those costs."""

    @classmethod
    def of(cls, lanes: int, *, has_tiles: bool = False) -> "TransformCosts":
        """Those of a CPU with so many lanes, and with or without tile registers, which only new ones have.

        In the time of a byte, wider vectors make more products, and more of such vectors wait for it.
        """
        if has_tiles:
            return cls(lanes=lanes, megabyte=10.0, most_mb=80.0, cached_bytes=2e6, byte=4.0)
        square = lanes**2
        return cls(lanes=lanes, megabyte=0.6 * square, most_mb=20.0, cached_bytes=2.5e6, byte=square / 16)

    def transforming(self, channels: int, points: int = POINTS) -> float:
        """One of so many channels of tiles."""
        distant_mb = min(4e-6 * points * channels, self.most_mb) - _NEAR_MB
        near = (_TRANSFORM_COST + _TRANSFORM_COST_PER_LANE * self.lanes) * points / POINTS
        return near + self.megabyte * max(0.0, distant_mb)

    def reading(self, weights: int) -> float:
        """Reading so many weights."""
        size = 4 * weights
        return self.byte * size if size > self.cached_bytes else 0.0

    def ratio(self, inside: int, out: int, rows: int, cols: int) -> float:
        """What a transformed 3×3 convolution costs, relative to a direct one."""
        direct = rows * cols * 9 * out * inside + self.reading(9 * out * inside)
        tiles = _tiles(rows) * _tiles(cols)
        around = self.transforming(tiles * (out + inside)) * (out + inside)
        changed = tiles * (POINTS * out * inside + around) + self.reading(POINTS * out * inside)
        return changed / direct


def pays(conv: OpenConv, costs: TransformCosts, each: int = 1) -> bool:
    """Whether this convolution is worth transforming, if a direct one adds so many products in a lane."""
    window, (out, inside, kh, kw) = conv.window, conv.weight.shape
    simple = window.stride == (1, 1) and window.dilation == (1, 1) and (kh, kw) == (3, 3)
    if not simple or conv.groups != 1:
        return False
    return each * costs.ratio(inside, out, *conv.shape[-2:]) < _WORTH


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
