"""The searches of a job: opened in workers, asked for batches, opened again when their workers are lost."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass, field

from tuneloom.app.reuse.gifts import Hints
from tuneloom.app.reuse.job_reuse import JobReuse
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.spending import Spending
from tuneloom.app.tuning.stage_calls import StageCalls
from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Raised, TimedOut
from tuneloom.model import JobSpec, SearchOptions, Trial

_TRIES = 3
_MOST_KILLS = 20
_KILLED = Died(cause=KilledBy(signal.SIGKILL))
"""Somebody else ended a worker: lack of memory and our own limits are other causes."""


@dataclass(slots=True)
class Lane:
    """One batch of a task on its way; `building` are the numbers of the candidates that build now."""

    name: str
    progress: TaskProgress
    planned: int
    left: int = 0
    trials: list[Trial] = field(default_factory=list)
    tries: int = 0
    kills: int = 0
    hints: Hints = field(default_factory=Hints)
    building: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Searches:
    """One for each task; a worker keeps those of several tasks."""

    _spec: JobSpec
    _tasks: Sequence[TaskProgress]
    _spending: Spending
    _calls: StageCalls
    _reuse: JobReuse | None

    def select_call(self, lane: Lane) -> Call:
        """Asks for the candidates of a batch; the first time, this opens the search."""
        progress = lane.progress
        if progress.opened:
            return self._calls.select(progress, lane.planned, lane.hints)
        progress.opened = True
        return self._calls.open_and_select(progress, lane.planned, self._options(progress))

    def worker_lost(self, worker: str) -> None:
        """The searches that it kept are opened again; they then learn all trials anew."""
        for progress in self._tasks:
            if self._calls.search_worker(progress) == worker:
                progress.opened = False

    def given_up(self, lane: Lane, result: CallResult) -> bool:
        """Whether a search that raised, hung or died ends here; one whose worker died is opened again."""
        lane.kills += result == _KILLED
        lane.tries += result != _KILLED
        self.close(lane.progress, result)
        patience = lane.tries < _TRIES and lane.kills < _MOST_KILLS
        if patience and not isinstance(result, Raised | TimedOut):
            return False
        lane.progress.exhausted = True
        lane.progress.first_error = lane.progress.first_error or f"its search ended: {result}"
        return True

    def close(self, progress: TaskProgress, result: CallResult) -> None:
        """A search that raised is opened again; a process that died took all its searches along."""
        if isinstance(result, Raised):
            progress.opened = False
        else:
            self.worker_lost(self._calls.search_worker(progress))

    def _options(self, progress: TaskProgress) -> SearchOptions:
        spec = self._spec
        base = SearchOptions(
            seed=spec.seed,
            trials=self._spending.most_trials,
            batch=spec.batch,
            self_contained=spec.self_contained,
            extra=dict(spec.extra),
        )
        return self._reuse.options(progress, base) if self._reuse else base
