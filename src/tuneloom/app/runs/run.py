"""One run of the program: jobs taken from the store, conducted, and their results kept."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from traceback import format_exception, format_exception_only
from typing import Any, Protocol

from tuneloom.app.bundles import writing as bundling
from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.conducting.interruptions import Interruptions
from tuneloom.app.conducting.listening import Listener, Span
from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.app.kinds.results import canary_ratios, job_result
from tuneloom.app.runs.bookkeeping import Book
from tuneloom.app.runs.job_programs import ProgramMaker
from tuneloom.engine.api import Engine
from tuneloom.engine.machine import Machine, Offer
from tuneloom.errors import OutputError, TargetError, TuneloomError
from tuneloom.model import JobSpec
from tuneloom.scheduling import Core, policy_named
from tuneloom.scheduling.messages import Command, Event
from tuneloom.store import JobRecord, JobStatus, RunStatus, Store

_LOOK_S = 1.0
_ONE_AT_A_TIME = ("sequential", "synchronous", "interleaved")
_LANES = 3
_SLOTS_PER_LANE = 4  # a batch keeps about so many build slots busy while others are selected


class Interrupted(TuneloomError):  # noqa: N818 - the name is the message
    """The user ended the run; everything measured is kept."""

    exit_code = 130


class Display(Protocol):
    """Shows a run while it goes on."""

    def show(self, run: "TuningRun", now_s: float) -> None:
        """Called several times a second."""


class TuningRun(Listener):
    """Carries out all jobs that the store has for a run, also those added while it goes on."""

    def __init__(
        self,
        store: Store,
        run: str,
        engine: Engine,
        machine: Machine,
        policy: str,
        display: Display | None = None,
    ) -> None:
        self.run = run
        self.machine = machine
        self.policy = policy
        self.jobs: dict[str, ModelJob] = {}
        self.failures: dict[str, TuneloomError] = {}
        self._store = store
        self._engine = engine
        self._book = Book(store, run)
        self._display = display
        self._statuses: dict[str, JobStatus] = {}
        self._interruptions = Interruptions()
        self._looked_s = 0.0
        self._arrived = time.monotonic()
        self._programs = ProgramMaker(
            store=store, book=self._book, lanes=self._lanes, tuners=machine.host.slots
        )
        self.conductor = Conductor(Core(policy_named(policy)), engine, self)

    def execute(self) -> None:
        """Run until all jobs have ended; raises Interrupted on Ctrl-C or SIGTERM."""
        self._book.core_began(self.policy)
        self.conductor.add_machine(self.machine)
        self._book.flush()
        try:
            self._engine.prepare()
            with self._interruptions:
                self._conduct()
        except KeyboardInterrupt as error:
            self._book.flush()
            self._store.finish_run(self.run, RunStatus.INTERRUPTED, "ended by the user")
            raise Interrupted(f"stopped; everything measured is kept: tuneloom resume {self.run}") from error
        finally:
            self._engine.close()
            self._discard_unfinished()

    def _discard_unfinished(self) -> None:
        """Leave no half bundle behind, however the run ended; a resumed job writes it again."""
        for program in self.jobs.values():
            if program.spec.out is not None:
                bundling.discard(Path(program.spec.out))

    def _conduct(self) -> None:
        """Run jobs until the run is closed in the store and no job came in at the last moment."""
        self._take_new_jobs()
        while True:
            self.conductor.run()
            self._book.flush()
            self._close()
            self._take_new_jobs()
            if self.conductor.idle:
                return
            self._store.take_over_run(self.run)

    def happened(self, event: Event, commands: Sequence[Command]) -> None:
        self._book.decided(event, commands)

    def resource_joined(self, offer: Offer, at_s: float) -> None:
        self._book.resource_joined(offer, at_s)

    def resource_left(self, name: str, reason: str, at_s: float) -> None:
        self._book.resource_left(name, reason, at_s)

    def ran(self, span: Span) -> None:
        self._book.ran(span)

    def job_refused(self, job: str, reason: str) -> None:
        self._end(job, JobStatus.FAILED, TargetError(reason))

    def job_failed(self, job: str, error: Exception) -> None:
        self._release_workers(job)
        if isinstance(error, TuneloomError):
            failure = error
        else:
            name, line = self.jobs[job].spec.name, format_exception_only(error)[-1].strip()
            failure = TuneloomError(f"{name}: {line}; --debug shows where")
            failure.__cause__ = error
        self._end(job, JobStatus.FAILED, failure, trace="".join(format_exception(error)))

    def _release_workers(self, job: str) -> None:
        for worker in ("model", *(f"tuner{n}" for n in range(self.machine.host.slots))):
            self._engine.release(f"{job}:{worker}")

    def job_ended(self, job: str, *, cancelled: bool) -> None:
        program = self.jobs[job]
        self._release_workers(job)
        if cancelled:
            self._end(job, JobStatus.CANCELLED, None)
            return
        failure = program.failure or self._completed(program)
        self._end(job, JobStatus.FAILED if failure else JobStatus.FINISHED, failure)

    def beat(self, now_s: float) -> None:
        self._interruptions.check()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._book.flush()
            self._follow_wishes()
        if self._display is not None:
            self._display.show(self, now_s)

    def status_of(self, job: str) -> JobStatus:
        """How a job of this run stands."""
        return self._statuses[job]

    def _completed(self, program: ModelJob) -> TuneloomError | None:
        finish = program.finish
        if finish is not None and finish.failure:
            return TuneloomError(f"{program.spec.name}: {finish.failure}")
        if finish is not None and finish.unwritten is not None:
            return finish.unwritten
        if program.spec.out is not None:
            try:
                cores = self.machine.cores_of(program.spec.device_key)
                bundling.complete(Path(program.spec.out), program, self.run, cores)
            except OutputError as error:
                return error
        return None

    def _end(self, job: str, status: JobStatus, failure: TuneloomError | None, trace: str = "") -> None:
        program = self.jobs[job]
        result = _result_of_broken(program, trace) if trace else job_result(program)
        if not trace:
            program.settle()
        if failure is not None:
            self.failures[job] = failure
            result["failure"] = str(failure)
        if status is not JobStatus.FINISHED and program.spec.out is not None:
            bundling.discard(Path(program.spec.out))
        self._statuses[job] = status
        self._store.set_job(job, status, result)
        songs = sorted(song for other in self.jobs.values() for song in canary_ratios(other))
        if songs:
            self._store.set_note(self.run, "canary", songs)

    def _close(self) -> None:
        failed = "; ".join(str(failure) for failure in self.failures.values())
        self._store.finish_run(self.run, RunStatus.FAILED if failed else RunStatus.FINISHED, failed)

    def _follow_wishes(self) -> None:
        """Other processes leave their wishes in the store: new jobs, pauses, cancellations."""
        self._take_new_jobs()
        for record in self._store.jobs(self.run):
            before = self._statuses.get(record.id)
            if record.status is before or before is None or before.ended:
                continue
            self._statuses[record.id] = record.status
            self._wish(record.status)(record.id)

    def _wish(self, status: JobStatus) -> Callable[[str], None]:
        if status is JobStatus.CANCELLED:
            return self.conductor.cancel
        return self.conductor.pause if status is JobStatus.PAUSED else self.conductor.resume

    def _take_new_jobs(self) -> None:
        for record in self._store.jobs(self.run):
            if record.id not in self.jobs and not record.status.ended:
                self._take(record)

    def _take(self, record: JobRecord) -> None:
        spec = JobSpec.from_json(dict(record.spec))
        program = self.jobs[record.id] = self._programs.program(record.id, spec)
        try:
            program.export_to = str(bundling.prepare(Path(spec.out))) if spec.out is not None else None
        except OutputError as error:
            self._end(record.id, JobStatus.FAILED, error)
            return
        paused = record.status is JobStatus.PAUSED
        self._statuses[record.id] = JobStatus.PAUSED if paused else JobStatus.RUNNING
        self._store.set_job(record.id, self._statuses[record.id])
        if paused:
            self.conductor.pause(record.id)
        self.conductor.submit(program, spec.arrival_s)

    @property
    def _lanes(self) -> int:
        if self.policy in _ONE_AT_A_TIME:
            return 1
        return _LANES + self.machine.host.slots // _SLOTS_PER_LANE


def _result_of_broken(program: ModelJob, trace: str) -> dict[str, Any]:
    """Where the code of a job raised, and what the job came to if it still can tell."""
    try:
        return {**job_result(program), "trace": trace}
    except Exception:
        return {"trace": trace}
