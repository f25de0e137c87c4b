"""Who gives a schedule to whom: bounded, best expected gain first."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tuneloom.model import Decision, Lesson, Seed, SketchSpace, TaskSpace, TileDomain
from tuneloom.model.space import TVM, implementer_of
from tuneloom.transfer.fitting import VARIANTS, fit_decisions
from tuneloom.transfer.forms import DoesNotFit, Form, form_of, likeness

_LATER_VARIANT = 0.9  # a less faithful fit of the same schedule is a little less promising
_FAVOURED = 2.0
_TEACHES = 0.65  # forms this alike say the same with the same decisions


@dataclass(frozen=True, slots=True, kw_only=True)
class Donor:
    """A measured record that may give its schedule away. `origin` is what its gifts are marked with.

    `apart` is how many doublings lie between its shapes and those of the task that asks.
    """

    record: int
    task_key: str
    kernel_class: str
    gflop: float
    seconds: float
    device_key: str
    origin: str
    trace: str = field(repr=False)
    apart: float = 0.0

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise ValueError(f"a donor needs a positive time, got {self.seconds}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedSeed:
    """A donor's schedule as a seed for one task; `expected` ranks it (1: as good as known)."""

    seed: Seed
    donor: Donor
    expected: float


def fitted_seeds(
    space: TaskSpace, donors: Sequence[Donor], count: int, favourite: str | None = None
) -> tuple[list[FittedSeed], list[DoesNotFit]]:
    """The most promising seeds that fit, and why others do not; every point only once.

    Schedules of the task `favourite` (a representative) come before equals.
    """
    quality = qualities(donors)
    found: dict[tuple[int | None, object], FittedSeed] = {}
    misfits: list[DoesNotFit] = []
    for donor in donors:
        worth = quality[donor.record] * (_FAVOURED if donor.task_key == favourite else 1.0)
        for fit in _fits(space, donor, worth):
            if isinstance(fit, DoesNotFit):
                misfits.append(fit)
                continue
            point = (fit.seed.sketch, fit.seed.decisions or fit.seed.configuration)
            if point not in found or found[point].expected < fit.expected:
                found[point] = fit
    ranked = sorted(found.values(), key=lambda fit: _order(fit, space.task_key))
    return ranked[:count], misfits


def _order(fit: FittedSeed, task_key: str) -> tuple[bool, float, float, int]:
    """The task's own records first: they are known to run, and how fast."""
    return (fit.donor.task_key != task_key, -fit.expected, fit.donor.seconds, fit.donor.record)


def qualities(donors: Iterable[Donor]) -> dict[int, float]:
    """By record, how good a donor is: near the best of its task, and that task near the machine's best."""
    listed = list(donors)
    best: dict[str, float] = {}
    for donor in listed:
        best[donor.task_key] = min(donor.seconds, best.get(donor.task_key, math.inf))
    rates = {d.task_key: d.gflop / best[d.task_key] for d in listed}
    top = max(rates.values(), default=0.0) or 1.0
    return {
        d.record: best[d.task_key]
        / d.seconds
        * math.sqrt(rates[d.task_key] / top if rates[d.task_key] else 1)
        for d in listed
    }


def _fits(space: TaskSpace, donor: Donor, worth: float) -> Iterator[FittedSeed | DoesNotFit]:
    own = donor.task_key == space.task_key
    if implementer_of(donor.trace) != TVM:  # whoever makes code of it fits it, too
        yield _whole(donor, worth / (1 + donor.apart))
        return
    form = form_of(donor.trace)
    if isinstance(form, DoesNotFit):
        yield form
        return
    match = best_sketch(space, form)
    if match is None:
        yield _whole(donor, worth) if own else DoesNotFit("no sketch of this form")
        return
    number, alike = match
    knobs = space.sketches[number].knobs
    near = 1.0 if own else alike / (1 + extent_distance(form.decisions, space.sketches[number]))
    for place, variant in enumerate(["copy"] if own else VARIANTS):
        decisions = fit_decisions(form.decisions, knobs, variant)
        if isinstance(decisions, DoesNotFit):
            yield decisions
            continue
        seed = Seed(origin=donor.origin, sketch=number, decisions=decisions)
        yield FittedSeed(seed=seed, donor=donor, expected=worth * near * _LATER_VARIANT**place)


def _whole(donor: Donor, worth: float) -> FittedSeed:
    """A schedule that is given as it is: of the very same workload, or one that its implementer fits."""
    return FittedSeed(seed=Seed(origin=donor.origin, configuration=donor.trace), donor=donor, expected=worth)


def best_sketch(space: TaskSpace, form: Form) -> tuple[int, float] | None:
    """The number of the sketch most alike, and how alike; None if all are different."""
    best: tuple[int, float] | None = None
    for number, sketch in enumerate(space.sketches):
        own = form_of(sketch.trace)
        alike = likeness(own, form) if isinstance(own, Form) else 0.0
        if alike > (best[1] if best else 0.0):
            best = (number, alike)
    return best


def extent_distance(decisions: Sequence[Decision], sketch: SketchSpace) -> float:
    """Doublings between the loops a schedule was made for and those it is given to, on average."""
    ratios = [
        abs(math.log2(knob.extent / math.prod(decision)))
        for decision, knob in zip(decisions, sketch.knobs, strict=True)
        if isinstance(knob, TileDomain) and isinstance(decision, tuple)
    ]
    return sum(ratios) / (2 * len(ratios)) if ratios else 0.0


def lessons_for(space: TaskSpace, donors: Sequence[Donor]) -> list[Lesson]:
    """What other tasks' records teach about this task's space; what does not translate is left out."""
    best: dict[str, float] = {}
    for donor in donors:
        best[donor.task_key] = min(donor.seconds, best.get(donor.task_key, math.inf))
    lessons: dict[tuple[int, tuple[Decision, ...]], Lesson] = {}
    for donor in sorted(donors, key=lambda each: each.task_key != space.task_key):
        lesson = _lesson(space, donor, donor.seconds / best[donor.task_key])
        if lesson is not None:
            lessons.setdefault((lesson.sketch, lesson.decisions), lesson)
    return list(lessons.values())


def _lesson(space: TaskSpace, donor: Donor, slowdown: float) -> Lesson | None:
    form = form_of(donor.trace)
    match = best_sketch(space, form) if isinstance(form, Form) else None
    if match is None or match[1] < _TEACHES or not isinstance(form, Form):
        return None
    decisions = fit_decisions(form.decisions, space.sketches[match[0]].knobs, "nearest")
    if isinstance(decisions, DoesNotFit):
        return None
    return Lesson(sketch=match[0], decisions=decisions, slowdown=max(1.0, slowdown))
