"""Tuning one kernel from start to end on this machine, with builds and runs in a process of their own."""

import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneloom.errors import NothingMeasured
from tuneloom.model import (
    Artifact,
    Budget,
    Candidate,
    Failure,
    FailureKind,
    MeasuringPolicy,
    Outcome,
    SearchOptions,
    Task,
    Trial,
)
from tuneloom.tuners.kernel.isolation import IsolatedTuner
from tuneloom.tuners.kernel.kernel import Kernel
from tuneloom.tuners.kernel.presampling import presampled
from tuneloom.tuners.kernel.reranking import Reranking
from tuneloom.tuners.kernel.tuner import KernelTuner

Listener = Callable[[Trial], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a kernel is tuned; the defaults need no choosing.

    `spare` is how many more candidates are built than run, so that what the compiler
    reveals can decide which of them run; 0 leaves that out. `presample` builds around
    valid points before anything runs, as long as that pays.
    """

    budget: Budget
    seed: int = 0
    search: str = "guided"
    init: str = "validity"
    batch: int = 1
    spare: int = 0
    presample: bool = False
    policy: MeasuringPolicy = field(default_factory=MeasuringPolicy)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResult:
    """What tuning found; every trial is kept, `built_only` were built but never run.

    `relevance` is how strongly the time depends on each knob, as shares of one; empty
    for a search that has no model.
    """

    best: dict[str, Any]
    seconds: float
    trials: tuple[Trial, ...]
    elapsed_s: float
    presampling_s: float = 0.0
    built_only: int = 0
    relevance: dict[str, float] = field(default_factory=dict)

    @property
    def failures(self) -> Counter[FailureKind]:
        """How often each kind of failure happened."""
        outcomes = (trial.outcome for trial in self.trials)
        return Counter(outcome.kind for outcome in outcomes if isinstance(outcome, Failure))


class _Run:
    """The state of one tuning run."""

    def __init__(self, kernel: Kernel, plan: Plan, listener: Listener | None) -> None:
        self.task, self.plan, self.listener = kernel.task(), plan, listener
        options = SearchOptions(
            seed=plan.seed,
            trials=plan.budget.trials,
            batch=plan.batch,
            extra={"search": plan.search, "init": plan.init},
        )
        self.search = KernelTuner().open(self.task, options, ())
        self.reranking = Reranking()
        self.trials: list[Trial] = []
        self.began = time.perf_counter()
        self.presampling_s = 0.0
        self.built_only = 0

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self.began

    @property
    def best(self) -> Trial | None:
        valid = [trial for trial in self.trials if trial.seconds is not None]
        return min(valid, key=lambda trial: trial.seconds or 0.0, default=None)

    def over(self) -> bool:
        """Whether the budget is spent or the goal reached."""
        budget, best = self.plan.budget, self.best
        if len(self.trials) >= budget.trials or (
            budget.seconds is not None and self.elapsed_s >= budget.seconds
        ):
            return True
        return bool(budget.goal_ms is not None and best and (best.seconds or 0) * 1e3 <= budget.goal_ms)

    def finish(self, candidate: Candidate, outcome: Outcome) -> None:
        """Keep a trial and let the search learn from it."""
        trial = Trial(candidate=candidate, outcome=outcome)
        self.trials.append(trial)
        self.search.update([trial])
        if self.listener is not None:
            self.listener(trial)

    def round(self, isolated: IsolatedTuner) -> bool:
        """Build a batch and run the best of it; False when the space is spent."""
        left = self.plan.budget.trials - len(self.trials)
        wanted = min(self.plan.batch, left)
        candidates = self.search.select(wanted + min(self.plan.spare, left - wanted))
        built: list[tuple[Candidate, Artifact]] = []
        for candidate in candidates:
            artifact = isolated.build(self.task, candidate, self.plan.policy)
            if isinstance(artifact, Failure):
                self.finish(candidate, artifact)
            else:
                built.append((candidate, artifact))
        for candidate, artifact in self._chosen(built, wanted):
            if not self.over():
                self._profile(isolated, candidate, artifact)
        return bool(candidates)

    def _chosen(
        self, built: list[tuple[Candidate, Artifact]], wanted: int
    ) -> list[tuple[Candidate, Artifact]]:
        order = self.reranking.order([artifact.features for _, artifact in built])
        self.built_only += max(0, len(built) - wanted)
        return [built[i] for i in order[:wanted]]

    def _profile(self, isolated: IsolatedTuner, candidate: Candidate, artifact: Artifact) -> None:
        best = self.best
        outcome = isolated.profile(self.task, artifact, self.plan.policy, best.seconds if best else None)
        self.finish(candidate, outcome)
        self.reranking.learn(artifact.features, self.trials[-1].seconds)


def tune(kernel: Kernel, plan: Plan, listener: Listener | None = None) -> KernelResult:
    """Tune a kernel until its budget, its goal or its space is spent.

    Raises NothingMeasured, with the commonest failure, if no configuration worked.
    """
    run = _Run(kernel, plan, listener)
    with IsolatedTuner() as isolated:
        if plan.presample:
            run.presampling_s = _presample(run, isolated, kernel)
        while not run.over() and run.round(isolated):
            pass
    return _result(run)


def _presample(run: _Run, isolated: IsolatedTuner, kernel: Kernel) -> float:
    """Teach the search which points build; returns the seconds that took."""
    began = time.perf_counter()

    def builds(point: tuple[int, ...]) -> bool:
        candidate = run.search.candidate(point)
        return isinstance(isolated.build(run.task, candidate, run.plan.policy), Artifact)

    run.search.presampled(presampled(kernel.space, builds, run.plan.seed))
    return time.perf_counter() - began


def _result(run: _Run) -> KernelResult:
    best = run.best
    if best is None or best.seconds is None:
        raise NothingMeasured(
            f"none of {len(run.trials)} configurations worked; {_commonest(run.task, run.trials)}"
        )
    return KernelResult(
        best=json.loads(best.candidate.configuration),
        seconds=best.seconds,
        trials=tuple(run.trials),
        elapsed_s=run.elapsed_s,
        presampling_s=run.presampling_s,
        built_only=run.built_only,
        relevance=run.search.points.relevance(),
    )


def _commonest(task: Task, trials: Sequence[Trial]) -> str:
    failures = [trial.outcome for trial in trials if isinstance(trial.outcome, Failure)]
    if not failures:
        return f"the budget of {task.name!r} ended before the first"
    kind, count = Counter(failure.kind for failure in failures).most_common(1)[0]
    message = next(failure.message for failure in failures if failure.kind is kind)
    return f"{count} ended in {kind.value}, such as: {message[:200]}"
