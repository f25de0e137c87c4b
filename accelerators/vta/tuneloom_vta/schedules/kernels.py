"""Micro-ops of a tile: the two outermost loops are the instruction's, the rest is unrolled."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tuneloom_vta.instructions import Uops, micro_ops
from tuneloom_vta.schedules.tiling import Numbers, Tiling


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over products: how often, and how far each index moves."""

    extent: int
    dst: int
    src: int
    wgt: int


_ONCE = Loop(1, 0, 0, 0)


def loops_of(tiling: Tiling) -> tuple[Loop, ...]:
    """The loops of a tile's products that run more than once, in the published order."""
    knobs, kernel, stride = tiling.knobs, tiling.workload.kernel, tiling.workload.stride
    loops = (
        Loop(knobs.tile_ci, 0, tiling.in_rows * tiling.in_columns, kernel * kernel),
        Loop(knobs.tile_w, 1, stride, 0),
        Loop(kernel, 0, 1, 1),
        Loop(kernel, 0, tiling.in_columns, kernel),
        Loop(knobs.tile_co, knobs.tile_h * knobs.tile_w, 0, knobs.tile_ci * kernel * kernel),
        Loop(knobs.tile_h, knobs.tile_w, stride * tiling.in_columns, 0),
    )
    return tuple(loop for loop in loops if loop.extent > 1)


def folded(tiling: Tiling) -> Mapping[str, int]:
    """The fields of the instruction for its two loops."""
    outer, inner = (*loops_of(tiling)[:2], _ONCE, _ONCE)[:2]
    fields = {"iter_out": outer.extent, "iter_in": inner.extent}
    fields |= {"dst_out": outer.dst, "src_out": outer.src, "wgt_out": outer.wgt}
    return fields | {"dst_in": inner.dst, "src_in": inner.src, "wgt_in": inner.wgt}


def products(tiling: Tiling) -> Uops:
    """The micro-ops of the products of all threads, one thread after the other."""
    dst, src, wgt = (np.zeros(1, dtype=np.int64) for _ in range(3))
    for loop in loops_of(tiling)[2:]:
        dst, src, wgt = (
            _nested(before, loop.extent, each)
            for before, each in ((dst, loop.dst), (src, loop.src), (wgt, loop.wgt))
        )
    thread = np.arange(tiling.threads).reshape(-1, 1)
    parts = (dst + thread * tiling.sums, src + thread * tiling.inputs, wgt + thread * tiling.weights)
    return micro_ops(tiling.configuration, *(part.reshape(-1) for part in parts))


def operations(tiling: Tiling) -> Uops:
    """One micro-op for each thread: its first sum, and its bias as the source."""
    first = np.arange(tiling.threads) * tiling.sums
    return micro_ops(tiling.configuration, first, first + tiling.results, np.zeros_like(first))


def _nested(before: Numbers, extent: int, each: int) -> Numbers:
    return (before.reshape(-1, 1) + np.arange(extent) * each).reshape(-1)
