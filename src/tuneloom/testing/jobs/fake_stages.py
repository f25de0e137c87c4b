"""The stages of a tuner as a script: spaces of numbered points, times that follow a formula."""

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Raised, Returned
from tuneloom.model import Artifact, Candidate, Failure, Measurement, Task, Trial

Outcome = Artifact | Failure | Measurement | CallResult


def point(number: int) -> Candidate:
    """The candidate of a numbered point; number 0 is the default schedule."""
    return Candidate(key=f"p{number}", configuration=str(number), origin="search" if number else "default")


def slower_with_number(_task: Task, number: int) -> Outcome:
    """Point 1 takes 1 ms, point 2 takes 2 ms, and so on; the default takes 10 ms."""
    return Measurement(seconds=((number or 10) * 1e-3,))


@dataclass(slots=True)
class _FakeSearch:
    task: Task
    proposed: set[str]
    learned: list[Trial]


@dataclass(slots=True)
class FakeStages:
    """Answers the calls that tuning makes, in memory, as `tuneloom.tuners.stages` would.

    `space` is how many points each task has. `build` and `profile` may answer with an
    outcome or with how the call itself ended. `log` has one line for each thing done.
    """

    space: int = 1000
    build: Callable[[Task, int], Outcome] = lambda _task, number: Artifact(payload=str(number).encode())
    profile: Callable[[Task, int], Outcome] = slower_with_number
    log: list[str] = field(default_factory=list)
    opened_with: list[tuple[str, int]] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    _searches: dict[tuple[str, str], _FakeSearch] = field(default_factory=dict)

    def crash_at_next(self, function: str) -> None:
        """Let the worker of the next call to this function die, with all searches it holds."""
        self.crashes.append(function)

    def __call__(self, call: Call) -> CallResult:
        function = call.function.partition(":")[2]
        if function in self.crashes:
            self.crashes.remove(function)
            self._searches = {key: s for key, s in self._searches.items() if key[0] != _process(call)}
            return Died(cause=KilledBy(signal.SIGKILL))
        result: CallResult = getattr(self, f"_{function}")(_process(call), *call.arguments)
        return result

    def _open_and_select(
        self,
        worker: str,
        key: str,
        _tuner: str,
        task: Task,
        _options: Any,
        known: Sequence[Trial],
        count: int,
    ) -> CallResult:
        self.opened_with.append((task.name, len(known)))
        keys = {trial.candidate.key for trial in known}
        self._searches[worker, key] = _FakeSearch(task, keys, list(known))
        return self._select(worker, key, count)

    def _select(self, worker: str, key: str, count: int) -> CallResult:
        search = self._searches.get((worker, key))
        if search is None:
            return Raised(error=f"KeyError: {key}", trace="")
        self.log.append(f"select {search.task.name}")
        fresh = [c for c in map(point, range(self.space)) if c.key not in search.proposed][:count]
        search.proposed.update(c.key for c in fresh)
        return Returned(value=fresh)

    def _update(self, worker: str, key: str, trials: Sequence[Trial]) -> CallResult:
        search = self._searches.get((worker, key))
        if search is not None:
            search.learned.extend(trials)
            self.log.append(f"update {search.task.name} {len(trials)}")
        return Returned(value=None)

    def _build(self, _worker: str, _tuner: str, task: Task, candidate: Candidate, _policy: Any) -> CallResult:
        return _ended(self.build(task, int(candidate.configuration)))

    def _profile(
        self, _worker: str, _tuner: str, task: Task, artifact: Artifact, _policy: Any, _best_s: float | None
    ) -> CallResult:
        return _ended(self.profile(task, int(artifact.payload)))


def _process(call: Call) -> str:
    """The process a call goes to: a worker's name on one machine is not the same as on another."""
    return f"{call.worker} on {call.place.machine}" if call.place is not None else str(call.worker)


def _ended(outcome: Outcome) -> CallResult:
    return Returned(value=outcome) if isinstance(outcome, (Artifact, Failure, Measurement)) else outcome
