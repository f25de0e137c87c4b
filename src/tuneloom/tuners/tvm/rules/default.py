"""A schedule for any kernel: nothing clever, but vectors inside and all cores outside.

It is what a kernel without a template begins with, and what is left where the general
space can't be generated.
"""

from typing import Any

from tuneloom.tuners.tvm.rules.growth import too_large_inlined
from tuneloom.tuners.tvm.targets.target import TargetSpec

_REDUCE, _SPATIAL = 2, 0


def default_sketch(sch: Any, target: TargetSpec) -> None:
    """Inline what can be, then vectorise and parallelise every block that is left."""
    *others, last = sch.get_child_blocks(sch.get_sblock("root"))
    kept = [block for block in others if not _inlined(sch, block)]
    for block in (*kept, last):
        _spread(sch, block, target)


def _inlined(sch: Any, block: Any) -> bool:
    """Whether a block that one other reads could be computed there."""
    from tvm.s_tir.schedule import ScheduleError

    kinds = [int(var.iter_type) for var in sch.get(block).iter_vars]
    readers = sch.get_consumers(block)
    if any(kind != _SPATIAL for kind in kinds) or len(readers) != 1:
        return False
    if too_large_inlined(sch.get(block), sch.get(readers[0])):
        return False
    try:
        sch.compute_inline(block)
    except ScheduleError:
        return False
    return True


def _spread(sch: Any, block: Any, target: TargetSpec) -> None:
    loops = sch.get_loops(block)
    kinds = [int(var.iter_type) for var in sch.get(block).iter_vars]
    if len(loops) != len(kinds) or any(kind not in (_SPATIAL, _REDUCE) for kind in kinds):
        return
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == _SPATIAL]
    reduced = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == _REDUCE]
    if not spatial:
        return
    around = _vectorised(sch, spatial, reduced, target)
    if target.cores > 1:
        sch.parallel(sch.fuse(*around) if len(around) > 1 else around[0])
    if reduced:
        sch.decompose_reduction(block, reduced[0])


def _vectorised(sch: Any, spatial: list[Any], reduced: list[Any], target: TargetSpec) -> list[Any]:
    """The last axis in vectors, inside of all reductions; returns the loops around both."""
    *around, last = spatial
    if int(sch.get(last).extent) % target.lanes:
        sch.reorder(*spatial, *reduced)
        return spatial
    whole, vector = sch.split(last, [None, target.lanes])
    sch.reorder(*around, whole, *reduced, vector)
    sch.vectorize(vector)
    return [*around, whole]
