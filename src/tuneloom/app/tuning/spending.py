"""What a tuning job may still spend, on how many trials of a task next, and when its goal is met."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tuneloom.app.reuse.division import GLANCE
from tuneloom.app.reuse.job_reuse import JobReuse
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.outlook import Standing, outlook
from tuneloom.model import Budget, JobSpec

_MOST_SCALE = 4.0


@dataclass(slots=True)
class Goal:
    """The latency at which a job may end.

    `reference_s` is what ONNX Runtime takes, once it was timed. Kernels are timed one by one; `scale`
    is how much longer the whole model took than their sum, once it was run.
    """

    budget: Budget
    reference_s: float | None = None
    scale: float = 1.0

    @property
    def latency_s(self) -> float | None:
        """What the model may take; None without a goal."""
        wanted = []
        if self.budget.goal_ms is not None:
            wanted.append(self.budget.goal_ms / 1e3)
        if self.budget.goal_ratio is not None and self.reference_s is not None:
            wanted.append(self.budget.goal_ratio * self.reference_s)
        return min(wanted, default=None)

    def met_by(self, kernels_s: float | None) -> bool:
        """Whether a model whose kernels take so long together meets it."""
        wanted_s = self.latency_s
        return wanted_s is not None and kernels_s is not None and kernels_s * self.scale <= wanted_s

    def missed_by(self, model_s: float) -> bool:
        """Whether a model that takes so long as a whole misses it."""
        wanted_s = self.latency_s
        return wanted_s is not None and model_s > wanted_s

    def calibrate(self, model_s: float, kernels_s: float | None) -> None:
        """Learn from the whole model: it may take longer than its kernels one by one."""
        if kernels_s is not None and kernels_s > 0:
            self.scale = min(_MOST_SCALE, max(1.0, model_s / kernels_s))

    def result(self, model_s: float | None) -> dict[str, Any]:
        """How a job stands against its goal, as plain data; nothing without a goal."""
        if self.budget.goal_ms is None and self.budget.goal_ratio is None:
            return {}
        wanted_s = self.latency_s
        told: dict[str, Any] = {"wanted_s": wanted_s, "met": None}
        if self.reference_s is not None:
            told["onnxruntime_s"] = self.reference_s
        if model_s is not None and wanted_s is not None:
            told["met"] = model_s <= wanted_s
        return {"goal": told}


_FIRST_BATCH = 4
_TRIALS_A_SECOND = 2
"""What is expected of a job whose seconds are bounded, before it shows its pace."""
_BUILDS_EACH = 8
"""Builds in vain for each trial of the budget that cost nothing, where builds are looked at by themselves."""


class Spending:
    """The budget of a job against what its tasks have used: trials, seconds, and its goal."""

    def __init__(self, spec: JobSpec, tasks: Sequence[TaskProgress], reuse: JobReuse | None) -> None:
        self._spec = spec
        self._tasks = tasks
        self._reuse = reuse
        self.most_trials = spec.budget.trials
        self.stopping = False
        self.started_s: float | None = None
        self.latest_s = 0.0
        self.goal = Goal(spec.budget)
        self.known = 0
        self.curve: list[tuple[int, float]] = []

    @property
    def spent(self) -> int:
        """Trials finished, of all tasks; after presampling, builds that fail cost none."""
        return sum([len(t.trials) for t in self._tasks]) - self._free

    @property
    def _free(self) -> int:
        if self._spec.extra.get("presample") != "yes":
            return 0
        in_vain = sum(not trial.built for t in self._tasks for trial in t.trials)
        return min(in_vain, _BUILDS_EACH * self.most_trials)

    @property
    def latency_s(self) -> float | None:
        """What one run of the model takes by its kernels' best times; None while some have none."""
        times = [t.best_s for t in self._tasks]
        if any(s is None for s in times):
            return None
        return sum(t.task.weight * s for t, s in zip(self._tasks, times, strict=True) if s is not None)

    def over(self, at_s: float) -> bool:
        """Whether no more trials should begin."""
        return self.stopping or self._left() <= 0 or self.late(at_s) or self.goal.met_by(self.latency_s)

    def late(self, at_s: float) -> bool:
        """Whether the seconds of the budget are over."""
        seconds = self._spec.budget.seconds
        return seconds is not None and self.started_s is not None and at_s - self.started_s >= seconds

    def note(self, at_s: float) -> None:
        """A trial was kept; remember whether the model became faster by it."""
        self.latest_s = at_s
        latency_s = self.latency_s
        if latency_s is not None and (not self.curve or latency_s < self.curve[-1][1]):
            self.curve.append((self.spent, latency_s))

    def outlook(self, at_s: float) -> str:
        """What should be said of the goal and the deadline now; nothing if all is well."""
        spent = self.spent
        pace_s = self._pace_s(self.latest_s, spent)
        if pace_s is None:
            return ""
        wanted_s = self.goal.latency_s
        standing = Standing(
            spent=spent,
            budget=self.most_trials,
            pace_s=pace_s,
            at_s=at_s,
            goal_s=None if wanted_s is None else wanted_s / self.goal.scale,
            deadline_s=self._spec.deadline_s,
        )
        return outlook(standing, self.curve)

    def next_batch(self, progress: TaskProgress) -> int:
        """How many trials of a task to begin, within the budget."""
        return min(self._batch(progress), self._left())

    def remaining_s(self) -> float | None:
        """How long the rest takes at the pace so far, within the budget's seconds; None if nobody knows."""
        spent, seconds = self.spent, self._spec.budget.seconds
        pace_s = self._pace_s(self.latest_s, spent)
        rest_s = None if pace_s is None else pace_s * max(0, self.most_trials - spent)
        if seconds is None or self.started_s is None:
            return rest_s
        left_s = max(0.0, seconds - max(0.0, self.latest_s - self.started_s))
        return left_s if rest_s is None else min(rest_s, left_s)

    def _pace_s(self, at_s: float, spent: int) -> float | None:
        """What a trial took since tuning began, or was resumed; None until there is one."""
        made = spent - self.known
        return None if self.started_s is None or made <= 0 else (at_s - self.started_s) / made

    def left_s(self, at_s: float) -> float | None:
        """Seconds until the budget is spent by the pace so far; None before the first trial."""
        spent = self.spent
        pace_s = self._pace_s(at_s, spent)
        if pace_s is None or self.started_s is None:
            return None
        rest_s = pace_s * (self._spec.budget.trials - spent)
        if self._spec.budget.seconds is not None:
            rest_s = min(rest_s, self._spec.budget.seconds - (at_s - self.started_s))
        return max(0.0, rest_s)

    def _left(self) -> int:
        return self.most_trials - self.spent - sum(t.in_flight for t in self._tasks)

    def _batch(self, progress: TaskProgress) -> int:
        """A small first batch while the budget is small, so that every task gets its turn."""
        room = (progress.quota or self.most_trials + self._free) - len(progress.trials) - progress.in_flight
        seeds = self._seeds_for(progress)
        if progress.batches:
            owing = max(_FIRST_BATCH, progress.due) if progress.due else self._spec.batch
            return min(seeds or self._spec.batch, owing, room)
        return min(max(self._spec.batch, 1 + seeds), self._first_wanted(progress, seeds), room)

    def _first_wanted(self, progress: TaskProgress, seeds: int) -> int:
        """A first batch has the default and the seeds; unless they are the kernel's own, a guess beside them.

        What another kernel gives may be slower than what the tuner guesses: it must not be all that is tried.
        Where seconds may end sooner than trials, it is small, so that every task gets its turn.
        """
        if progress.quota is not None:
            return progress.quota
        if progress.waits:
            return GLANCE
        if seeds and self._reuse is not None and self._reuse.knows(progress.task):
            return 1 + seeds
        each = self.most_trials // (2 * len(self._tasks))
        if self._spec.budget.seconds is not None:
            expected = _TRIALS_A_SECOND * self._spec.budget.seconds / (2 * len(self._tasks))
            each = min(each, 2 * _FIRST_BATCH, int(expected))
        return max(_FIRST_BATCH, each, 2 + seeds)

    def _seeds_for(self, progress: TaskProgress) -> int:
        """How many first gifts the next batch of a task consists of; later ones come along with a batch."""
        if self._reuse is None or progress.waits:
            return 0
        if progress.seeded:
            self._reuse.look_for_news(progress)
            return 0
        progress.seeded = True
        return self._reuse.prepare(progress)
