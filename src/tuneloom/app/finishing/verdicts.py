"""Which schedule of a task is used, decided by times taken in turn."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tuneloom.app.tasks.progress import Contender, TaskProgress, is_borrowed
from tuneloom.errors import in_short
from tuneloom.model import CheckResult, OwnRuntime, Trial
from tuneloom.model.opened import title_of
from tuneloom.tuners.tvm.models.rivals.runtimes import RIVALS

_CLEARLY = 1.0  # a short model is worth a closer look only if another runtime was faster at first sight
_NEAR = 0.8  # a part of the model may be slower even where all of it is faster by less than this
_HOPELESS = 0.93  # all of the model was faster by more, so it is again
_SHORT_S, _LONG_S = 1e-4, 1e-3
PIECES_IN = "onnxruntime"
_NEXT = 1.15
"""Another runtime that took so many times what the fastest did will not be the fastest."""
_WORTH_IT = 1.0  # a tuned kernel has to be faster than the default by itself


def misread(check: CheckResult, tolerance: float) -> str:
    """What to say if no runtime that runs the model gives outputs as near as this; empty if one does."""
    if check.own_runtime is None:
        return ""
    nearest = min(check.own_runtime.every, key=lambda one: one.difference)
    if nearest.difference <= tolerance:
        return ""
    return (
        f"its outputs differ from those of {title_of(nearest.name)} by {nearest.difference:.2g}, relative to "
        "their size: TVM reads the model in another way; if you don't mind, raise --tolerance"
    )


@dataclass(slots=True)
class Verdict:
    """What became of a task: the schedule that is used, if any, and the times that decided.

    `kept` is the default schedule where nothing tuned beats it; `barren` says that nothing of
    the task could be measured, so that it is left alone. `own` are schedules that no other task
    gave and that beat the default, fastest first, in case a borrowed one fails. `instead_s` is
    what the kernel takes inside the model after its borrowed schedule was dropped. `met` are the
    schedules that were timed side by side, with their times.
    """

    chosen: Contender | None = None
    kept: Contender | None = None
    own: list[tuple[float, Contender]] = field(default_factory=list)
    tuned_s: float | None = None
    default_s: float | None = None
    instead_s: float | None = None
    met: list[tuple[float, Contender]] = field(default_factory=list)
    barren: bool = False
    note: str = ""

    @property
    def used_s(self) -> float | None:
        """What the kernel takes as the model runs it; None where that was not measured."""
        if self.chosen is not None:
            return self.tuned_s
        return self.default_s if self.kept is not None else self.instead_s

    @property
    def contest(self) -> list[tuple[float, Contender]]:
        """The schedule that is used and those that were slower beside it, but none that the model refused."""
        used_s = self.tuned_s if self.chosen is not None and self.met else None
        return [] if used_s is None else [each for each in self.met if each[0] >= used_s]

    def result(self, trials: int) -> dict[str, Any]:
        """What became of the task, as plain data, after so many trials."""
        return {
            "before_s": self.default_s,
            "after_s": self.used_s,
            "trials": trials,
            "used": self.chosen is not None,
            "note": self.note,
        }

    def drop(self, note: str) -> None:
        """Use no schedule; the note says why."""
        self.chosen = self.kept = None
        self.note = note


def opening_verdict(progress: TaskProgress, known: Trial | None = None) -> Verdict:
    """What is known of a task before its best schedules meet; `known` is the best that an earlier job found.

    That is used where none of this job's trials gave a schedule, unless it was among those that failed.
    """
    default = progress.default
    verdict = Verdict(default_s=default.seconds if default else None)
    if not progress.best and known is not None and not progress.tried(known.candidate):
        verdict.chosen = Contender(known)
        verdict.tuned_s = verdict.chosen.seconds
        verdict.note = "not measured in this job: the best known schedule is used"
    elif not progress.best:
        # The default is loops as they came in: a template's first guess is better unless it failed.
        verdict.kept, verdict.note = default if progress.failures else None, _untuned_because(progress)
        verdict.barren = default is None and bool(progress.trials or progress.first_error)
    return verdict


def _untuned_because(progress: TaskProgress) -> str:
    first = in_short(progress.first_error.partition("\n")[0])
    if not progress.trials:
        return f"not tuned: {first}" if first else "not tuned: the budget ended before its turn"
    failed = sum(progress.failures.values())
    if not failed:
        return "not tuned: only its default schedule was measured"
    return f"not tuned: {failed} of {len(progress.trials)} trials failed, the first with: {first}"


def decide(
    verdict: Verdict,
    contenders: Sequence[Contender],
    rounds: Sequence[Sequence[float]],
    default: Contender | None,
    joules: Sequence[float | None] | None = None,
) -> None:
    """Choose by the median over rounds, or by joules if they are asked for and known.

    A schedule that does not beat the default is not used.
    """
    times = [median(seconds) for seconds in rounds]
    if joules is None and len(times) > 1:
        verdict.met = list(zip(times, contenders, strict=True))
    spent = [] if joules is None else [each for each in joules if each is not None]
    costs = spent if len(spent) == len(times) else times
    ranked = sorted(zip(costs, times, contenders, strict=True), key=lambda each: each[0])
    known_s = verdict.default_s if costs is times else None
    worth = float("inf") if known_s is None else _WORTH_IT * known_s
    for cost, seconds, contender in ranked:
        if contender is default:
            verdict.default_s, worth = seconds, _WORTH_IT * cost
    best = next((each for each in ranked if each[2] is not default), None)
    if best is None:
        verdict.kept, verdict.note = default, "none of its best schedules could be built again"
        return
    verdict.tuned_s = best[1]
    if joules is not None and costs is times:
        verdict.note = "chosen by latency, since its energy could not be measured"
    if best[0] < worth:
        verdict.chosen = best[2]
        verdict.own = [(s, c) for cost, s, c in ranked if cost < worth and _is_own(c, default)]
    else:
        verdict.kept = default
        verdict.note = (
            f"not {'faster' if costs is times else 'better'} than the default schedule, so not used"
        )


def _is_own(contender: Contender, default: Contender | None) -> bool:
    return contender is not default and not is_borrowed(contender.trial.candidate.origin)


def may_be_handed_over(check: CheckResult) -> bool:
    """Whether another runtime, timed in turn, was faster than the tuned model, or near enough for a part."""
    own = check.own_runtime
    return own is not None and own.name in RIVALS and _is_near(own)


def may_win_in_pieces(check: CheckResult) -> bool:
    """Whether some pieces may be faster in ONNX Runtime, which alone takes pieces: it was near with all.

    A model that takes little time is not cut: calls of another runtime would count.
    """
    own = check.own_runtime
    near = own is not None and any(one.name == PIECES_IN and _is_near(one) for one in own.every)
    return near and own is not None and median(own.tuned_s) >= _LONG_S


def _is_near(other: OwnRuntime) -> bool:
    """A model that takes almost no time is kept: that of a call would decide."""
    tuned_s = median(other.tuned_s)
    limit = _NEAR if tuned_s >= _LONG_S else _CLEARLY
    return tuned_s > max(_SHORT_S, limit * median(other.seconds))


def may_win_whole(check: CheckResult) -> bool:
    """Whether the whole model may be faster in another runtime: timed in turn, that was not much slower."""
    own = check.own_runtime
    return own is not None and median(own.tuned_s) > _HOPELESS * median(own.seconds)


def share_to_beat(check: CheckResult) -> float:
    """What the fastest other runtime takes, of the tuned model's time; not more than all of that."""
    own = check.own_runtime
    assert own is not None
    return min(1.0, *(median(one.seconds) / median(own.tuned_s) for one in own.every))


def near_the_fastest(check: CheckResult) -> tuple[str, ...]:
    """The runtimes that may be the fastest if they are timed again."""
    own = check.own_runtime
    assert own is not None
    limit_s = _NEXT * median(own.seconds)
    return tuple(one.name for one in own.every if median(one.seconds) <= limit_s)


def fall_back(verdict: Verdict, instead_s: float) -> None:
    """Put the task's own best in place of a borrowed schedule, or none where it has none.

    `instead_s` is what the kernel takes inside the model then.
    """
    slower = "its borrowed schedule was slower inside the model"
    if verdict.own:
        verdict.tuned_s, verdict.chosen = verdict.own[0]
        verdict.note = f"{slower}: its own best is used instead"
    else:
        verdict.drop(f"{slower} and was dropped")
        verdict.instead_s = instead_s
