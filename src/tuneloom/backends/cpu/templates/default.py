"""A schedule for any kernel: nothing clever, but vectors inside and all cores outside.

It is what a kernel without a template begins with, and what is left where the general
space can't be generated.
"""

from typing import Any

from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates.growth import too_large_inlined
from tuneloom.backends.cpu.templates.pieces import cut, in_rows, share
from tuneloom.backends.cpu.templates.reading import together
from tuneloom.compiler.lazy import s_tir

_REDUCE, _SPATIAL = 2, 0


def default_sketch(sch: Any, target: CpuTarget) -> None:
    """Inline what can be, then vectorise and parallelise every block that is left."""
    *others, last = sch.get_child_blocks(sch.get_sblock("root"))
    kept = [block for block in others if not _inlined(sch, block)]
    for block in (*kept, last):
        _spread(sch, block, target)


def _inlined(sch: Any, block: Any) -> bool:
    """Whether a block that one other reads could be computed there."""
    kinds = [int(var.iter_type) for var in sch.get(block).iter_vars]
    readers = sch.get_consumers(block)
    if any(kind != _SPATIAL for kind in kinds) or len(readers) != 1:
        return False
    if too_large_inlined(sch.get(block), sch.get(readers[0])):
        return False
    try:
        sch.compute_inline(block)
    except s_tir.ScheduleError:
        return False
    return True


def _spread(sch: Any, block: Any, target: CpuTarget) -> None:
    loops = sch.get_loops(block)
    kinds = [int(var.iter_type) for var in sch.get(block).iter_vars]
    if len(loops) != len(kinds) or any(kind not in (_SPATIAL, _REDUCE) for kind in kinds):
        return
    spatial = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == _SPATIAL]
    reduced = [loop for loop, kind in zip(loops, kinds, strict=True) if kind == _REDUCE]
    if not spatial:
        return
    if reduced:
        _sums(sch, spatial, reduced, target)
    else:
        in_rows(sch, spatial, together(sch.get(block)), target)


def _sums(sch: Any, spatial: list[Any], reduced: list[Any], target: CpuTarget) -> None:
    """A vector of sums side by side goes through all that is added to them; then comes the next."""
    sch.reorder(*spatial, *reduced)
    share(sch, spatial[:-1] or [sch.add_unit_loop(spatial[-1])], target)
    whole, vector = cut(sch, spatial[-1], target.lanes)
    (sums,) = sch.get_child_blocks(whole)
    added = sch.get_loops(sums)[-len(reduced) :]
    sch.reorder(*added, vector)
    sch.vectorize(vector)
    sch.decompose_reduction(sums, added[0])
