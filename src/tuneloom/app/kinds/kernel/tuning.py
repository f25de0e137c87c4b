"""Lanes for a kernel with knobs: small, since every result teaches, and with builds to spare if wanted."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from tuneloom.app.conducting.programs import Step
from tuneloom.app.tasks.outcomes import built
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.searches import Lane
from tuneloom.app.tuning.stage_calls import StageCalls
from tuneloom.app.tuning.task_tuning import TaskTuning
from tuneloom.engine.calls import CallResult, Returned
from tuneloom.errors import NothingMeasured
from tuneloom.model import Artifact, Candidate, Failure, Measurement, Outcome, StageKind, Task
from tuneloom.scheduling.stages import Demand, DeviceDemand
from tuneloom.tuners.kernel import cargo
from tuneloom.tuners.kernel.search.reranking import Reranking

_FEWEST_LANES = 2
_QUOTED = 200  # characters of a failure that an error repeats


@dataclass(frozen=True, slots=True)
class _Held:
    """A candidate that is built and may be run."""

    number: int
    candidate: Candidate
    artifact: Artifact


_PARTS = {
    StageKind.SELECT: cargo.for_search,
    StageKind.BUILD: cargo.for_build,
    StageKind.PROFILE: cargo.for_profile,
}


@dataclass(frozen=True, slots=True)
class KernelCalls(StageCalls):
    """Sends every stage the part of the kernel that it needs; each part is made once."""

    parts: dict[StageKind, Task] = field(default_factory=dict)

    def builders(self) -> None:
        """A user's function may leave anything behind, so each build has a process of its own."""

    def task_for(self, stage: StageKind, progress: TaskProgress) -> Task:
        if stage not in self.parts:
            self.parts[stage] = _PARTS[stage](progress.task)
        return self.parts[stage]


class KernelTuning(TaskTuning):
    """Tunes one kernel. A batch is one candidate and `spare` more that are built, not run.

    All lanes serve the one task, and there are no more of them than keep the device busy:
    what is chosen while results are missing is chosen worse. What the compiler revealed
    decides which candidate of a batch is run; the others are run when the space has
    nothing else left.
    """

    def __init__(self, *given: Any, spare: int = 0, builds_on_device: bool = False, **named: Any) -> None:
        super().__init__(*given, **named)
        self._spare = spare
        self._on_device = builds_on_device
        self._held: dict[str, list[_Held]] = {}
        self._reranking = Reranking()
        self._left_out: list[_Held] = []
        self._limit = self._most_lanes
        self._most_lanes = min(_FEWEST_LANES, self._limit)
        self._build_s = self._profile_s = 0.0

    @property
    def built_only(self) -> int:
        """How many candidates were built and not run."""
        return len(self._left_out)

    def teach(self, features: Mapping[str, float], seconds: float | None) -> None:
        """Learn what a trial of an earlier process revealed."""
        self._reranking.learn(features, seconds)

    def _lanes_per_task(self) -> int:
        return self._most_lanes

    def _build_demand(self) -> Demand:
        return DeviceDemand(key=self._spec.device_key) if self._on_device else super()._build_demand()

    def _stage_calls(self, workers: int) -> StageCalls:
        return KernelCalls(self._job, self._spec, workers)

    def _built(
        self, lane: Lane, number: int, candidate: Candidate, result: CallResult, at_s: float
    ) -> Sequence[Step]:
        if not self._spare:
            return super()._built(lane, number, candidate, result, at_s)
        artifact: Artifact | Failure = built(result)
        held = self._held.setdefault(lane.name, [])
        following: list[Step] = []
        if isinstance(artifact, Failure):
            following += self._settle(lane, candidate, artifact, None, at_s)
        else:
            self._limits.learn(lane.progress.task.kernel_class, artifact.build_s)
            held.append(_Held(number, candidate, artifact))
        return following + (self._chosen(lane) if held and lane.left == len(held) else [])

    def _needless(self, lane: Lane, number: int, at_s: float) -> bool:
        """Those of a batch are chosen among when all are built."""
        return not self._spare and super()._needless(lane, number, at_s)

    def _chosen(self, lane: Lane) -> list[Step]:
        """Everything of the lane is built: run the most promising, leave the others."""
        held = self._held.pop(lane.name)
        order = self._reranking.order([each.artifact.features for each in held])
        wanted = max(1, lane.planned - self._spare)
        left_out = [held[place] for place in order[wanted:]]
        self._left_out += left_out
        lane.left -= len(left_out)
        lane.progress.in_flight -= len(left_out)
        return [self._run_step(lane, held[place]) for place in order[:wanted]]

    def _selected(self, lane: Lane, result: CallResult, at_s: float) -> Sequence[Step] | None:
        spent = isinstance(result, Returned) and not result.value
        if not spent or not self._left_out:
            return super()._selected(lane, result, at_s)
        lane.progress.in_flight -= lane.planned - 1
        lane.left = 1
        return [self._run_step(lane, self._left_out.pop(0))]

    def _run_step(self, lane: Lane, held: _Held) -> Step:
        return self._profile_step(lane, held.number, held.candidate, held.artifact)

    def _settle(
        self, lane: Lane, candidate: Candidate, outcome: Outcome, artifact: Artifact | None, at_s: float
    ) -> Sequence[Step]:
        following = super()._settle(lane, candidate, outcome, artifact, at_s)
        if artifact is not None:
            self.teach(artifact.features, lane.trials[-1].seconds)
        if artifact is not None and isinstance(outcome, Measurement):
            self._build_s += artifact.build_s
            self._profile_s += outcome.profile_s
            self._most_lanes = self._lanes_wanted()
        return following

    def _lanes_wanted(self) -> int:
        """One that runs, and as many that build as fit into the time of a run."""
        building = ceil(self._build_s / self._profile_s) if self._profile_s else 1
        return min(self._limit, max(_FEWEST_LANES, 1 + building))


def nothing_worked(name: str, progress: TaskProgress) -> NothingMeasured:
    """The error for a kernel of which no configuration ran, with the commonest failure."""
    outcomes = [trial.outcome for trial in progress.trials]
    failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
    if not failures:
        reason = progress.first_error or "allow more time or trials"
        return NothingMeasured(f"{name}: no configuration was tried; {reason}")
    kind, count = Counter(failure.kind for failure in failures).most_common(1)[0]
    message = next(failure.message for failure in failures if failure.kind is kind)
    return NothingMeasured(
        f"{name}: all {len(failures)} configurations failed; "
        f"{count} with {kind.value}, for example: {message[:_QUOTED]}"
    )
