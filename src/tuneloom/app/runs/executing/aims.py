"""Jobs on their way from the store to the conductor: devices may have to be asked what to compile for."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.farm.aiming import Aiming
from tuneloom.app.runs.executing.held_run import HeldRun
from tuneloom.app.runs.executing.holding import HeldRuns
from tuneloom.engine.calls import CallResult, Lost
from tuneloom.errors import LeaseLost
from tuneloom.model import JobSpec
from tuneloom.store import JobRecord

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
