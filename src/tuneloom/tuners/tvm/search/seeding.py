"""What a search is given to begin with: points to try first, and what was seen elsewhere."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tuneloom.compiler.lazy import s_tir
from tuneloom.model import Decision, Lesson
from tuneloom.tuners.tvm.lowering.payloads import trace_text
from tuneloom.tuners.tvm.search.population import Row
from tuneloom.tuners.tvm.search.sketches import Sketch, decisions_in

_OWN_IS_ENOUGH = 64
"""With so many measurements of its own a task needs no lessons of others."""


def row_at(sketches: Sequence[Sketch], number: int, decisions: Sequence[Decision]) -> Row | None:
    """The row of a point, or None if the space does not have it."""
    if not 0 <= number < len(sketches) or len(sketches[number].knobs) != len(decisions):
        return None
    pairs = zip(sketches[number].knobs, decisions, strict=True)
    try:
        return (number, *(list(knob.values).index(value) for knob, value in pairs))
    except ValueError:
        return None


def own_rows(sketches: Sequence[Sketch]) -> list[Row]:
    """The decisions that sketches were made with, as rows; the most promising sketch first."""
    rows = (
        row_at(sketches, number, decisions_in(trace_text(s.trace))[1]) for number, s in enumerate(sketches)
    )
    return [row for row in rows if row is not None]


def lesson_rows(sketches: Sequence[Sketch], lessons: Iterable[Lesson]) -> dict[Row, float]:
    """Lessons as rows with how many times slower than the best they were."""
    rows = {}
    for lesson in lessons:
        row = row_at(sketches, lesson.sketch, lesson.decisions)
        if row is not None:
            rows[row] = lesson.slowdown
    return rows


def history(seconds: Mapping[Row, float], lessons: Mapping[Row, float]) -> dict[Row, float]:
    """All that a cost model learns from; lessons are scaled to the best time measured here."""
    good = [s for s in seconds.values() if math.isfinite(s)]
    if len(good) >= _OWN_IS_ENOUGH:
        return dict(seconds)
    best = min(good, default=1.0)
    return {row: slowdown * best for row, slowdown in lessons.items()} | dict(seconds)


def replayed(module: Any, configuration: str) -> Any | None:
    """A whole configuration on this kernel, or None if it does not fit."""
    schedule = s_tir.Schedule(module, debug_mask="none", error_render_level="none")
    try:
        s_tir.Trace.apply_json_to_schedule(json.loads(configuration), schedule)
    except Exception:  # a foreign schedule may fail in any way
        return None
    return schedule
