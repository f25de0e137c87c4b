"""Which schedule of a task is used, decided by times taken in turn."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from tuneloom.app.tasks.origins import is_borrowed
from tuneloom.app.tasks.progress import Contender

_WORTH_IT = 1.0  # a tuned kernel has to be faster than the default by itself


@dataclass(slots=True)
class Verdict:
    """What became of a task: the schedule that is used, if any, and the times that decided.

    `kept` is the default schedule where nothing tuned beats it. `own` are schedules that no
    other task gave and that beat the default, fastest first, in case a borrowed one fails.
    """

    chosen: Contender | None = None
    kept: Contender | None = None
    own: list[tuple[float, Contender]] = field(default_factory=list)
    tuned_s: float | None = None
    default_s: float | None = None
    note: str = ""


def decide(
    verdict: Verdict,
    contenders: Sequence[Contender],
    rounds: Sequence[Sequence[float]],
    default: Contender | None,
) -> None:
    """Choose by the median over rounds; a schedule that does not beat the default is not used."""
    times = [median(seconds) for seconds in rounds]
    ranked = sorted(zip(times, contenders, strict=True), key=lambda pair: pair[0])
    for seconds, contender in ranked:
        if contender is default:
            verdict.default_s = seconds
    best_s, best = next(((s, c) for s, c in ranked if c is not default), (None, None))
    if best_s is None:
        verdict.note = "none of its best schedules could be built again"
        return
    verdict.tuned_s = best_s
    worth_s = float("inf") if verdict.default_s is None else _WORTH_IT * verdict.default_s
    if best_s < worth_s:
        verdict.chosen = best
        verdict.own = [(s, c) for s, c in ranked if s < worth_s and _is_own(c, default)]
    else:
        verdict.kept = default
        verdict.note = "not faster than the default schedule, so not used"


def _is_own(contender: Contender, default: Contender | None) -> bool:
    return contender is not default and not is_borrowed(contender.trial.candidate.origin)


def fall_back(verdict: Verdict) -> None:
    """Put the task's own best in place of a borrowed schedule, or the default where there is none."""
    slower = "its borrowed schedule was slower inside the model"
    if verdict.own:
        verdict.tuned_s, verdict.chosen = verdict.own[0]
        verdict.note = f"{slower}: its own best is used instead"
    else:
        verdict.chosen = None
        verdict.note = f"{slower} and was dropped"
