"""Kernels that only move or map values: one pass, vectorised, nothing kept in between."""

from collections.abc import Sequence
from typing import Any

from tuneloom.tuners.tvm.rules.kernel import Shape
from tuneloom.tuners.tvm.targets.target import TargetSpec

_LONGEST_ROW = 64


def elementwise_sketch(sch: Any, shape: Shape, target: TargetSpec) -> None:
    """Everything into the last block; its last axis in vectors, the one before unrolled."""
    stream_sketch(sch, shape.after, target)


def stream_sketch(sch: Any, names: Sequence[str], target: TargetSpec) -> None:
    """The same for some of a kernel's blocks, the last of which stores their result."""
    for name in names[:-1]:
        sch.compute_inline(sch.get_sblock(name))
    result = sch.get_sblock(names[-1])
    *axes, last = sch.get_loops(result)
    extent = int(sch.get(last).extent)
    if extent % target.lanes == 0:
        whole, vector = sch.split(last, [None, target.lanes])
        sch.vectorize(vector)
        axes.append(whole)
    else:
        axes.append(last)
    rows = sch.fuse(*axes) if len(axes) > 1 else axes[0]
    tile = sch.sample_perfect_tile(rows, n=2, max_innermost_factor=_LONGEST_ROW)
    around, unrolled = sch.split(rows, list(tile))
    sch.unroll(unrolled)
    if target.cores > 1:
        sch.parallel(around)
