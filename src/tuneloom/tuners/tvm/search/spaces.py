"""The spaces of tasks as data, for those who compare tasks without touching TVM."""

from collections.abc import Sequence
from typing import Any

from tuneloom.model import ChoiceDomain, KnobDomain, SketchSpace, Task, TaskSpace, TileDomain
from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.lowering.payloads import trace_text
from tuneloom.tuners.tvm.lowering.tasks import unpack
from tuneloom.tuners.tvm.rules.generator import GENERAL, sketches_of
from tuneloom.tuners.tvm.search.knobs import Knob, TileKnob
from tuneloom.tuners.tvm.search.sketches import sketch_of


def describe(tasks: Sequence[Task]) -> list[TaskSpace]:
    """The space of every task; one whose space can't be generated has no sketches."""
    load_tvm()
    return [_describe(task) for task in tasks]


def _describe(task: Task) -> TaskSpace:
    try:
        schedules = _schedules(task)
    except Exception:  # whatever the compiler does not like is found again, and told, by the search
        schedules = []
    sketches = tuple(_as_data(schedule.trace) for schedule in schedules)
    return TaskSpace(task_key=task.key, sketches=sketches)


def _schedules(task: Task) -> list[Any]:
    from tvm.s_tir import meta_schedule as ms

    kernel = unpack(task)
    own = [schedule for schedule in sketches_of(kernel.module, kernel.target) if schedule is not None]
    if own:
        return own
    context = ms.TuneContext(
        mod=kernel.module,
        target=kernel.target.to_tvm(),
        space_generator=GENERAL,
        search_strategy="replay-trace",
        num_threads=1,
        rand_state=1,
    )
    return list(context.generate_design_space())


def _as_data(trace: Any) -> SketchSpace:
    sketch = sketch_of(trace)
    return SketchSpace(trace=trace_text(trace), knobs=tuple(_domain(knob) for knob in sketch.knobs))


def _domain(knob: Knob) -> KnobDomain:
    if isinstance(knob, TileKnob):
        return TileDomain(extent=knob.extent, parts=knob.parts, innermost_max=knob.innermost_max)
    low = int(min(value for value in knob.values if isinstance(value, int)))
    return ChoiceDomain(low=low, count=len(knob.values))
