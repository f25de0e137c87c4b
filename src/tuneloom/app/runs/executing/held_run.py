"""One run that an executor carries out: its jobs, how they stand, and what is written about them."""

import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from traceback import format_exception, format_exception_only
from typing import Any

from tuneloom.app.bundles import folders
from tuneloom.app.hosting.bundles import goes_to_store, with_folder
from tuneloom.app.kinds.base import JobContext, JobProgram
from tuneloom.app.kinds.finding import kind_named
from tuneloom.app.runs.executing.bookkeeping import Book
from tuneloom.app.runs.files import localised
from tuneloom.app.runs.view import RunView
from tuneloom.errors import OutputError, TuneloomError
from tuneloom.model import JobSpec, Trial
from tuneloom.store import (
    JobRecord,
    JobStatus,
    KeptTrial,
    Lease,
    Page,
    RunStatus,
    Share,
    Store,
    owner_of,
    taken_over,
)

TrialListener = Callable[[str, Trial], None]
"""Told of every trial of a job right after it was committed."""


@dataclass(slots=True)
class HeldRun:
    """A run under our lease. A job that can't be taken fails by itself; the others go on.

    Bundles that go into the store are packed beside the conductor, by `pack`: `packing` are those of jobs
    that end when that is done. `given_workers` are those that checked models and belong to a job now;
    each serves one job only.
    """

    store: Store
    lease: Lease
    book: Book
    lanes: int
    workers: int
    cores_of: Callable[[str], int]
    on_trial: TrialListener | None = None
    given_workers: set[str] = field(default_factory=set)
    share: Share | None = None
    is_only_job: Callable[[], bool] = lambda: False
    pack: Callable[[str, Path], "Future[tuple[str, int]]"] | None = None
    programs: dict[str, JobProgram] = field(default_factory=dict)
    statuses: dict[str, JobStatus] = field(default_factory=dict)
    due_s: dict[str, float] = field(default_factory=dict)
    failures: dict[str, TuneloomError] = field(default_factory=dict)
    packing: "dict[str, Future[tuple[str, int]]]" = field(default_factory=dict)
    shown: RunView | None = None

    @property
    def id(self) -> str:
        return self.lease.run

    @property
    def ended(self) -> bool:
        """Whether every job that was taken has ended."""
        return all(status.ended for status in self.statuses.values())

    def new_jobs(self) -> list[JobRecord]:
        """Jobs in the store that were not taken yet and have not ended."""
        return [r for r in self.store.jobs(self.id) if r.id not in self.statuses and not r.status.ended]

    def expect(self, record: JobRecord, now_s: float) -> JobSpec:
        """What is to be done for a job that is ours from now on, its times on our clock; `take` follows."""
        paused = record.status is JobStatus.PAUSED
        self.statuses[record.id] = JobStatus.PAUSED if paused else JobStatus.RUNNING
        submitted_s = now_s - (time.time() - record.created)
        spec = _timed(localised(self.store, JobSpec.from_json(dict(record.spec))), submitted_s)
        return with_folder(spec, record.run)

    def take(self, record: JobRecord, spec: JobSpec) -> JobProgram:
        """The program of a job that was expected."""
        program = self._program(record, spec)
        self.store.set_job(record.id, self.statuses[record.id])
        return program

    def refuse(self, record: JobRecord, error: Exception) -> None:
        """A job can't even begin."""
        self.end(record.id, JobStatus.FAILED, _as_failure(record, error))

    def _program(self, record: JobRecord, spec: JobSpec) -> JobProgram:
        self.due_s[record.id] = spec.arrival_s
        program = kind_named(spec.tuner).program(self._context(record.id, spec))
        program.export_to = str(folders.prepare(Path(spec.out))) if spec.out is not None else None
        self.programs[record.id] = program
        return program

    def _context(self, job: str, spec: JobSpec) -> JobContext:
        return JobContext(
            job=job,
            spec=spec,
            store=self.store,
            opened=lambda summary: self.book.opened(job, spec, summary),
            keep=lambda task, trial, artifact: self.book.keep(job, task, trial, artifact),
            lanes=self.lanes,
            workers=self.workers,
            device_cores=self.cores_of(spec.device_key),
            model_worker=self._checking_worker(spec),
            share=self.share,
            is_only_job=self.is_only_job,
        )

    def _checking_worker(self, spec: JobSpec) -> str:
        """The worker that read this job's model when it was checked, for the first job that asks."""
        call = kind_named(spec.tuner).refusal(spec)
        if call is None or call.worker is None or call.worker in self.given_workers:
            return ""
        self.given_workers.add(call.worker)
        return call.worker

    def committed(self, trials: Sequence[KeptTrial]) -> None:
        """Trials of this run are in the store now."""
        if self.on_trial is not None:
            for kept in trials:
                self.on_trial(kept.job, kept.trial)

    def move(self, job: str, status: JobStatus) -> None:
        """A job that goes on stands differently."""
        self.statuses[job] = status
        self.store.set_job(job, status)

    def complete(self, job: str, *, cancelled: bool) -> None:
        """The last stage of a job has ended: put what it made where it should go."""
        if cancelled:
            self.end(job, JobStatus.CANCELLED, None)
            return
        program = self.programs[job]
        failure = program.failure or program.complete(self.id)
        if failure is None and self.pack is not None and goes_to_store(program.spec, self.id):
            self.packing[job] = self.pack(self.id, Path(program.spec.out or ""))
        else:
            self.end(job, JobStatus.FAILED if failure else JobStatus.FINISHED, failure)

    def note_packed(self, *, wait: bool = False) -> None:
        """End the jobs whose bundles are in the store now; with `wait`, when all of them are."""
        for job, bundle in list(self.packing.items()):
            if wait or bundle.done():
                del self.packing[job]
                self._packed(job, bundle)

    def _packed(self, job: str, bundle: "Future[tuple[str, int]]") -> None:
        self.store.keep_bundle(self.id, *bundle.result())
        shutil.rmtree(self.programs[job].spec.out or "", ignore_errors=True)
        self.end(job, JobStatus.FINISHED, None)

    def break_off(self, job: str, error: Exception) -> None:
        """An error in a job's own code ended it; where it was raised is kept with the job."""
        if isinstance(error, TuneloomError):
            failure = error
        else:
            name, line = self.programs[job].spec.name, format_exception_only(error)[-1].strip()
            failure = TuneloomError(f"{name}: {line}; --debug shows where")
            failure.__cause__ = error
        self.end(job, JobStatus.FAILED, failure, trace="".join(format_exception(error)))

    def end(self, job: str, status: JobStatus, failure: TuneloomError | None, trace: str = "") -> None:
        """Keep how a job ended and what came out of it."""
        program = self.programs.get(job)
        result = _result_of(program, trace)
        if program is not None:
            if not trace:
                program.settle()
            if status is not JobStatus.FINISHED:
                _discard(program)
        if failure is not None:
            self.failures[job] = failure
            result["failure"] = str(failure)
        self.statuses[job] = status
        self.store.set_job(job, status, result)
        self._note_canary()
        if program is not None:
            kind_named(program.spec.tuner).ended(program.spec)

    def page(self, view: RunView | None) -> Page:
        """What was noted since the last page, with the view if it looks different from the last one."""
        if view is None or view.looks_like(self.shown):
            return self.book.page(None)
        self.shown = view
        return self.book.page(view)

    def close(self, view: RunView) -> bool:
        """End the run unless somebody still wants something of it."""
        for run in self.store.write_pages([self.page(view)]):
            raise taken_over(run)
        failed = "; ".join(str(failure) for failure in self.failures.values())
        status = RunStatus.FAILED if failed else RunStatus.FINISHED
        closed = self.store.finish_run(self.id, status, failed, unless_wished=True)
        if closed:
            self.store.drop_blobs(owner_of(self.id))
        return closed

    def discard_unfinished(self) -> None:
        """Leave no half bundle behind; a resumed job writes it again."""
        for program in self.programs.values():
            _discard(program)

    def _note_canary(self) -> None:
        ratios = sorted(pair for program in self.programs.values() for pair in self._canary(program))
        if ratios:
            self.store.set_note(self.id, "canary", ratios)

    def _canary(self, program: JobProgram) -> list[list[float]]:
        """The canary's times against its fastest: 1 is undisturbed."""
        if not program.canary_s:
            return []
        quiet_s = min(seconds for _, seconds in program.canary_s)
        return [[self.book.on_run_clock(at_s), seconds / quiet_s] for at_s, seconds in program.canary_s]


def _result_of(program: JobProgram | None, trace: str) -> dict[str, Any]:
    """What a job came to, if it still can tell; where its code raised, if it did."""
    if not trace:
        return program.result() if program else {}
    try:
        return {**(program.result() if program else {}), "trace": trace}
    except Exception:
        return {"trace": trace}


def _timed(spec: JobSpec, submitted_s: float) -> JobSpec:
    """The job with its arrival and its deadline on the executor's clock."""
    deadline_s = None if spec.deadline_s is None else spec.deadline_s + submitted_s
    return replace(spec, arrival_s=max(0.0, spec.arrival_s + submitted_s), deadline_s=deadline_s)


def _as_failure(record: JobRecord, error: Exception) -> TuneloomError:
    if isinstance(error, OutputError):
        return error
    if isinstance(error, TuneloomError):
        return TuneloomError(f"{record.name}: {error}")
    return TuneloomError(f"{record.name}: its description can't be used: {type(error).__name__}: {error}")


def _discard(program: JobProgram) -> None:
    if program.spec.out is not None:
        folders.discard(Path(program.spec.out))
