"""What others want of runs that an executor carries out, done in the order in which it came."""

from collections.abc import Callable

from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.runs.executing.aims import Aims
from tuneloom.app.runs.executing.held_run import HeldRun
from tuneloom.app.runs.executing.holding import HeldRuns
from tuneloom.store import JobStatus, Store, Wish, WishKind


class Granting:
    """Applies wishes; each is closed when what it changes is stored."""

    def __init__(
        self,
        store: Store,
        runs: HeldRuns,
        conductor: Conductor,
        aims: Aims,
        take_new_jobs: Callable[[HeldRun], None],
    ) -> None:
        self._store = store
        self._runs = runs
        self._conductor = conductor
        self._aims = aims
        self._take_new_jobs = take_new_jobs

    def grant(self) -> None:
        """Do what is wanted of all runs."""
        for wish in self._store.open_wishes(*self._runs.held):
            held = self._runs.held.get(wish.run)
            if held is not None:
                with self._runs.guarding(held):
                    self._apply(held, wish)
                    self._store.close_wish(wish)

    def _apply(self, held: HeldRun, wish: Wish) -> None:
        if wish.kind is WishKind.ADD:
            self._take_new_jobs(held)
            return
        job = wish.job
        if job is None or job not in held.statuses or held.statuses[job].ended:
            return
        match wish.kind:
            case WishKind.CANCEL:
                self._cancel(held, job)
            case WishKind.PAUSE:
                self._conductor.pause(job)
                held.move(job, JobStatus.PAUSED)
            case WishKind.UNPAUSE:
                self._conductor.resume(job)
                held.move(job, JobStatus.RUNNING)
            case WishKind.PRIORITY:
                priority = int(wish.body["priority"])
                self._conductor.prioritise(job, priority)
                self._store.set_priority(job, priority)

    def _cancel(self, held: HeldRun, job: str) -> None:
        if self._aims.drop(job):
            held.end(job, JobStatus.CANCELLED, None)
        self._conductor.cancel(job)
