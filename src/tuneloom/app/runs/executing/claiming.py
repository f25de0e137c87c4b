"""Which runs an executor takes, until it is asked to end."""

from collections.abc import Callable

from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.conducting.interruptions import Interruptions
from tuneloom.app.runs.executing.heartbeat import TTL_S
from tuneloom.app.runs.executing.holding import HeldRuns
from tuneloom.store import Lease, Store

_DRAIN_S = 60.0
_CROWDED = (
    4  # no tenant waits for another's long jobs while an executor has fewer runs than so many times its own
)


class Drained(Exception):  # noqa: N818 - the name is the message
    """Nothing runs any more, as asked for."""


class Claiming:
    """Claims runs that wait, or whose executors are gone, while there is room: none for `most_runs` 0.

    Asked to end, an executor that claims lets running stages come to their end; any other ends at once.
    """

    def __init__(
        self,
        store: Store,
        runs: HeldRuns,
        conductor: Conductor,
        hold: Callable[[Lease], object],
        *,
        holder: str,
        most_runs: int,
    ) -> None:
        self.lately = True
        self.interruptions = Interruptions()
        self._draining_since_s: float | None = None
        self._store = store
        self._runs = runs
        self._conductor = conductor
        self._hold = hold
        self._holder = holder
        self._most_runs = most_runs

    def claim(self) -> None:
        """Take what waits while there is room; a tenant that has nothing here yet may go beyond."""
        held = self._runs.held
        while self._draining_since_s is None and len(held) < _CROWDED * self._most_runs:
            beside = list(held) if len(held) >= self._most_runs else None
            lease = self._store.claim_run(self._holder, TTL_S, beside=beside)
            self.lately = lease is not None
            if lease is None:
                return
            self._hold(lease)

    def end_if_asked(self, now_s: float) -> None:
        """Raise KeyboardInterrupt if the user asked to end; of one that claims, Drained when it can end."""
        if self._most_runs:
            self._drain_if_asked(now_s)
        else:
            self.interruptions.check()

    def _drain_if_asked(self, now_s: float) -> None:
        """Start nothing more once asked to end; raise Drained when nothing runs, or takes too long."""
        jobs = self._conductor.core.jobs
        if self._draining_since_s is None:
            if not self.interruptions.asked:
                return
            self._draining_since_s = now_s
            for job in list(jobs):
                self._conductor.pause(job)
        running = any(job.running for job in jobs.values())
        if not running or now_s - self._draining_since_s > _DRAIN_S:
            raise Drained
