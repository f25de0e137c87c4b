"""Which schedules a kernel may have: the design spaces that are searched.

Kernels with one reduction on a CPU get a small space built around a tile of
accumulators that stays in vector registers: tens of trials find a schedule near the
peak of the core. Everything else gets MetaSchedule's general space.
"""

from collections.abc import Iterator
from typing import Any

from tuneloom.backends.base import GENERAL_SPACE
from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.cpu.templates.attention import attention_sketch, is_attention
from tuneloom.backends.cpu.templates.default import default_sketch
from tuneloom.backends.cpu.templates.elementwise import elementwise_sketch, uncrossed_sketch
from tuneloom.backends.cpu.templates.growth import outgrows
from tuneloom.backends.cpu.templates.kernel import Shape, shape_of
from tuneloom.backends.cpu.templates.lines import line_sketch
from tuneloom.backends.cpu.templates.registers import register_budget
from tuneloom.backends.cpu.templates.stages import is_staged, staged_sketch
from tuneloom.backends.cpu.templates.tile_products import tile_templates
from tuneloom.backends.cpu.templates.tiles import Variant, tiled_sketch, variants
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import ms, s_tir


def space_for(module: Any, target: CpuTarget) -> Any:
    """The space generator for a kernel on a target.

    Either an `ms.SpaceGenerator` or the name of one, as `ms.TuneContext` takes it.
    """
    load_tvm()
    sketches = [schedule for schedule in sketches_of(module, target) if schedule is not None]
    if sketches:
        return _offering(sketches, target)
    return last_resort(module, target) if outgrows(module) else GENERAL_SPACE


def last_resort(module: Any, target: CpuTarget) -> Any:
    """A space of a single schedule, for kernels whose general space can't be generated."""
    return _offering([_default(module, target) or s_tir.Schedule(module)], target)


def _offering(sketches: list[Any], target: CpuTarget) -> Any:
    def offer(_schedule: Any) -> list[Any]:
        return sketches

    return ms.space_generator.ScheduleFn(
        offer, sch_rules=[], postprocs=[register_budget(target)], mutator_probs={}
    )


def first_guess(module: Any, target: CpuTarget) -> Any | None:
    """A scheduled kernel that should be near the best without any trial.

    Where no template fits it is a plain default; None where not even that does.
    """
    found = next((schedule for schedule in sketches_of(module, target) if schedule is not None), None)
    return found if found is not None else _default(module, target)


def has_template(module: Any, target: CpuTarget) -> bool:
    """Whether some template fits a kernel."""
    return any(schedule is not None for schedule in sketches_of(module, target))


def _default(module: Any, target: CpuTarget) -> Any | None:
    return _attempt(module, lambda sch: default_sketch(sch, target))


def sketches_of(module: Any, target: CpuTarget) -> Iterator[Any]:
    """Schedules whose sampling decisions span the space, and are good guesses themselves.

    The most promising comes first, and each is made when it is asked for; None stands for a template that
    does not fit.
    """
    return (_attempt(module, template) for template in _templates(module, target))


def _templates(module: Any, target: CpuTarget) -> list[Any]:
    if outgrows(module):
        return []
    if is_attention(module):
        return [lambda sch: attention_sketch(sch, target)]
    shape = shape_of(module, target.lanes)
    if shape is None:
        return [lambda sch: line_sketch(sch, target)]
    if is_staged(shape):
        return [lambda sch: staged_sketch(sch, shape, target)]
    if shape.anchor is None:
        ways = (elementwise_sketch, uncrossed_sketch)
        return [lambda sch, way=way: way(sch, shape, target) for way in ways]
    return [*tile_templates(module, shape, target), *_tilers(shape, target)]


def _tilers(shape: Shape, target: CpuTarget) -> list[Any]:
    """Templates that work in vectors; none if they would need an instruction that the CPU lacks."""
    if shape.dots and (target.pairs if shape.pairs else target.dots) is None:
        return []
    return [_tiler(shape, target, variant) for variant in variants(shape)]


def _tiler(shape: Shape, target: CpuTarget, variant: Variant) -> Any:
    return lambda sch: tiled_sketch(sch, shape, target, variant)


def _attempt(module: Any, template: Any) -> Any | None:
    """A schedule made by a template, or None when the kernel does not have its form."""
    schedule = s_tir.Schedule(module, error_render_level="none")
    try:
        template(schedule)
    except (s_tir.ScheduleError, ValueError):
        return None
    return schedule
