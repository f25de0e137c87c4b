"""Jobs on their way from the store to the conductor, and what others want of them then."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.farm.aiming import Aiming
from tuneloom.app.runs.executing.held_run import HeldRun
from tuneloom.app.runs.executing.holding import HeldRuns
from tuneloom.engine.calls import CallResult, Lost
from tuneloom.errors import LeaseLost
from tuneloom.model import JobSpec
from tuneloom.store import JobRecord, JobStatus, Store, Wish, WishKind

Take = Callable[[HeldRun, JobRecord, JobSpec], None]
"""Takes a job that is aimed at its device."""


class Aims:
    """Aims jobs at their devices while other jobs go on; one that can't be aimed or taken fails alone."""

    def __init__(
        self, conductor: Conductor, runs: HeldRuns, aim: Callable[[JobSpec], Aiming], take: Take
    ) -> None:
        self._conductor = conductor
        self._runs = runs
        self._aim = aim
        self._take = take

    def begin(self, held: HeldRun, record: JobRecord) -> None:
        """Take a new job of a run, at once if no device has to be asked."""
        with _refusing(held, record):
            spec = held.expect(record, self._conductor.now_s())
            self._go_on(held, record, self._aim(spec), None)

    def drop(self, job: str) -> bool:
        """Aim a job no longer; whether it had not been taken yet."""
        return self._conductor.drop_question(job)

    def _go_on(
        self, held: HeldRun, record: JobRecord, aiming: Aiming, answers: Sequence[CallResult | Lost] | None
    ) -> None:
        """Ask devices, or take the job when all have answered."""

        def answered(results: Sequence[CallResult | Lost]) -> None:
            with self._runs.guarding(held), _refusing(held, record):
                self._go_on(held, record, aiming, results)

        try:
            calls = next(aiming) if answers is None else aiming.send(answers)
        except StopIteration as done:
            self._take(held, record, done.value)
        else:
            self._conductor.ask(record.id, calls, answered)


@contextmanager
def _refusing(held: HeldRun, record: JobRecord) -> Iterator[None]:
    """End a job that can't even begin: one bad job, or one whose files are gone, must not end the others."""
    try:
        yield
    except LeaseLost:
        raise
    except Exception as error:
        held.refuse(record, error)


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
