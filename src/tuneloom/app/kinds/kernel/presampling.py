"""Finding out what builds before any device time is spent, as stages on host slots; kept in the store."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tuneloom.app.conducting.programs import Step
from tuneloom.app.tasks.limits import SEARCH_S
from tuneloom.app.tasks.outcomes import built
from tuneloom.app.tuning.stage_calls import STAGES
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.model import Artifact, Candidate, JobSpec, SearchOptions, StageKind, Task
from tuneloom.scheduling.stages import ANY_CORE, StageRequest
from tuneloom.store import Store
from tuneloom.tuners.kernel import PRESAMPLED, cargo

_SEARCHING = "tuneloom.tuners.kernel.searching"
_LANE = "presample"

Sample = tuple[str, bool]
"""A configuration and whether it builds."""


@dataclass(slots=True)
class PresampleSteps:
    """Batches of builds until they stop paying; then `over` is asked what comes next.

    A worker that dies ends the presampling with what it has found.
    """

    job: str
    spec: JobSpec
    task: Task
    over: Callable[[list[Sample], float], Sequence[Step]]
    samples: list[Sample] = field(default_factory=list)
    _batch: list[Sample] = field(default_factory=list)
    _open: int = 0
    _rounds: int = 0

    def begin(self) -> list[Step]:
        """Ask for the first batch."""
        return [self._ask_step()]

    def _ask_step(self) -> Step:
        options = SearchOptions(seed=self.spec.seed, trials=self.spec.budget.trials, batch=1)
        call = Call(
            function=f"{_SEARCHING}:presample",
            arguments=(self.job, cargo.for_search(self.task), options, self._batch),
            worker=f"{self.job}:model",
            timeout_s=SEARCH_S,
        )
        request = self._request(f"select#{self._rounds}", 0, StageKind.SELECT)
        return Step(request=request, call=lambda: call, ended=self._asked)

    def _asked(self, result: CallResult, at_s: float) -> Sequence[Step]:
        candidates: list[Candidate] = result.value if isinstance(result, Returned) else []
        self._batch, self._open = [], len(candidates)
        self._rounds += 1
        if not candidates:
            return self.over(self.samples, at_s)
        return [self._build_step(number, candidate) for number, candidate in enumerate(candidates)]

    def _build_step(self, number: int, candidate: Candidate) -> Step:
        rules = self.spec.measuring
        call = Call(
            function=f"{STAGES}:build",
            arguments=(self.spec.tuner, cargo.for_build(self.task), candidate, rules),
            timeout_s=rules.build_timeout_s,
            memory_bytes=rules.memory_bytes,
        )

        def ended(result: CallResult, _at_s: float) -> Sequence[Step]:
            self._batch.append((candidate.configuration, isinstance(built(result), Artifact)))
            self.samples.append(self._batch[-1])
            self._open -= 1
            return [] if self._open else [self._ask_step()]

        request = self._request(f"build#{self._rounds}/{number}", 1, StageKind.BUILD)
        return Step(request=request, call=lambda: call, ended=ended)

    def _request(self, name: str, step: int, kind: StageKind) -> StageRequest:
        return StageRequest(
            id=f"{_LANE}/{name}",
            job=self.job,
            lane=_LANE,
            step=step,
            kind=kind.value,
            needs=ANY_CORE,
            then=ANY_CORE,
            task=self.task.name,
            home=f"{self.job}:model" if kind is StageKind.SELECT else "",
        )


def samples_text(samples: Sequence[Sample]) -> str:
    """Samples as text that a search takes in when it is opened."""
    return json.dumps([[json.loads(configuration), builds] for configuration, builds in samples])


@dataclass(frozen=True, slots=True)
class KernelMemory:
    """One job's part of the store; survives a kill like the trials do."""

    store: Store
    job: str

    def features(self) -> Sequence[tuple[Mapping[str, float], float | None]]:
        """What the compiler revealed about each finished trial, with its time."""
        return [(record.features, record.seconds) for record in self.store.trials(self.job)]

    def presampled(self) -> Sequence[Sample] | None:
        """What building alone showed; None before it was tried."""
        plans = [planned.plan for planned in self.store.tasks(self.job) if PRESAMPLED in planned.plan]
        return [(str(text), bool(builds)) for text, builds in plans[0][PRESAMPLED]] if plans else None

    def keep_presampled(self, task: str, samples: Sequence[Sample], took_s: float) -> None:
        """Keep what building alone showed."""
        plan = {PRESAMPLED: [list(sample) for sample in samples], "seconds": took_s}
        self.store.set_plan(self.job, task, plan)
