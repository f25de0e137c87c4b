"""Programs whose jobs go on, and what their own code raised."""

from collections.abc import Iterator
from contextlib import contextmanager

from tuneloom.app.conducting.programs import Program


class RunningPrograms:
    """Programs by job; an error in the code of one, or of what it keeps, is noted and ends its job alone."""

    def __init__(self) -> None:
        self._programs: dict[str, Program] = {}
        self._errors: dict[str, Exception] = {}

    def __bool__(self) -> bool:
        return bool(self._programs)

    def __contains__(self, job: str) -> bool:
        return job in self._programs

    def __getitem__(self, job: str) -> Program:
        return self._programs[job]

    def add(self, program: Program) -> None:
        """A job begins."""
        self._programs[program.ticket.id] = program

    def remove(self, job: str) -> Exception | None:
        """A job ended; the answer is the error that ended it, if one did."""
        self._programs.pop(job, None)
        return self._errors.pop(job, None)

    def worker_lost(self, job: str, worker: str) -> None:
        """Tell a program that what a worker kept for it is gone."""
        if job in self._programs:
            with self.blaming(job):
                self._programs[job].worker_lost(worker)

    @contextmanager
    def blaming(self, job: str) -> Iterator[None]:
        """Note what is raised as the error of a job."""
        try:
            yield
        except Exception as error:
            self._errors[job] = error

    def blame(self, job: str, error: Exception) -> None:
        """Note an error of a job."""
        self._errors[job] = error

    def is_broken(self, job: str) -> bool:
        """Whether an error of a job was noted."""
        return job in self._errors

    @property
    def broken(self) -> list[str]:
        """The jobs that have to be ended because of an error."""
        return list(self._errors)
