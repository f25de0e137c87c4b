"""The spaces of tasks as data, for those who compare tasks without touching TVM."""

from collections.abc import Sequence
from typing import Any

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model import ChoiceDomain, KnobDomain, SketchSpace, Task, TaskSpace, TileDomain
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.payloads import trace_text
from tuneloom.tuners.tvm.lowering.tasks import unpack
from tuneloom.tuners.tvm.search.knobs import Knob, TileKnob
from tuneloom.tuners.tvm.search.opening import opened
from tuneloom.tuners.tvm.search.sketches import sketch_of


def describe(tasks: Sequence[Task]) -> list[TaskSpace]:
    """The space of every task; one whose space can't be generated has no sketches.

    Nor has a kernel that somebody beside TVM claims: its search opens TVM's space late, if ever.
    """
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
    kernel = unpack(task)
    return [] if any(True for _ in claims_on(kernel)) else opened(kernel)[1]


def _as_data(trace: Any) -> SketchSpace:
    sketch = sketch_of(trace)
    return SketchSpace(trace=trace_text(trace), knobs=tuple(_domain(knob) for knob in sketch.knobs))


def _domain(knob: Knob) -> KnobDomain:
    if isinstance(knob, TileKnob):
        return TileDomain(extent=knob.extent, parts=knob.parts, innermost_max=knob.innermost_max)
    low = int(min(value for value in knob.values if isinstance(value, int)))
    return ChoiceDomain(low=low, count=len(knob.values))
