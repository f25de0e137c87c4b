"""What a store promises.

A store is used by one thread of one process; other processes may read and write the
same store at the same time. Every method is one short transaction: when a writing
method returns, what it wrote survives `kill -9` and a power cut. Times are seconds
since the epoch unless a name says otherwise. Every method raises StoreError when the
database can't be reached, is locked for too long, or the disk is full.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from tuneloom.model import Task, Trial
from tuneloom.store.records import (
    EMPTY,
    BankRow,
    EventRecord,
    JobRecord,
    JobStatus,
    Json,
    PlannedTask,
    Provenance,
    RunRecord,
    RunStatus,
    SpanRecord,
    TrialRecord,
    WorkloadRecord,
)


class RunStore(Protocol):
    """Runs and their notes."""

    def create_run(self, command: str, options: Mapping[str, Json] = EMPTY) -> RunRecord:
        """Begin a run owned by this process, under a new short id such as `amber-heron-42`."""

    def finish_run(self, run: str, status: RunStatus, message: str = "") -> None:
        """End a run; `message` is one line for people."""

    def take_over_run(self, run: str, *, force: bool = False) -> RunRecord:
        """Make this process the owner of a run that is not running any more.

        Raises StoreError if a living process owns it, or if that can't be known (another
        host) and `force` is not given.
        """

    def runs(self, limit: int | None = None) -> list[RunRecord]:
        """Runs, newest first."""

    def run(self, name: str) -> RunRecord:
        """The run with this id, an unambiguous beginning of it, or the newest for `last`.

        Raises StoreError naming the newest runs if there is no such run.
        """

    def set_note(self, run: str, key: str, value: Json) -> None:
        """Keep a value with the run, replacing an earlier one of this key."""

    def notes(self, run: str) -> dict[str, Json]:
        """All notes of a run, in the order in which their keys were first set."""


class JobStore(Protocol):
    """Jobs and their tasks."""

    def add_job(self, run: str, name: str, spec: Mapping[str, Json] = EMPTY) -> JobRecord:
        """Add a waiting job to a run; two jobs of one run may not share a name (StoreError)."""

    def set_job(self, job: str, status: JobStatus, result: Mapping[str, Json] | None = None) -> None:
        """Move a job; running notes the start once, an ended status notes the end.

        A `result` replaces the earlier one; None keeps it.
        """

    def jobs(self, run: str) -> list[JobRecord]:
        """The jobs of a run in the order in which they were added."""

    def job(self, job: str) -> JobRecord:
        """One job by its id; raises StoreError if there is none."""

    def add_tasks(
        self, job: str, tasks: Sequence[Task], *, family: str, target: str, tvm_version: str = ""
    ) -> None:
        """Add tasks to a job, and their workloads if nobody has added them before.

        Tasks the job has already are left as they are.
        """

    def set_plan(self, job: str, task_key: str, plan: Mapping[str, Json]) -> None:
        """Keep what was planned for a task, replacing an earlier plan."""

    def tasks(self, job: str) -> list[PlannedTask]:
        """The tasks of a job, payloads and all, in the order in which they were added."""


class TrialStore(Protocol):
    """Trials of jobs; all of them together are the bank."""

    def add_trial(
        self,
        job: str,
        task_key: str,
        trial: Trial,
        provenance: Provenance,
        *,
        build_s: float = 0.0,
        features: Mapping[str, float] = EMPTY,
    ) -> bool:
        """Commit a trial of a task added before; False if the job has this candidate already."""

    def add_trials(self, job: str, task_key: str, trials: Sequence[Trial], provenance: Provenance) -> int:
        """Commit many trials of one task at once (an import); returns how many were new."""

    def trials(self, job: str, task_key: str | None = None) -> list[TrialRecord]:
        """The trials of a job, or of one task of it, in the order in which they were committed."""

    def trial_count(self, job: str) -> int:
        """How many trials of the job are committed, failures among them."""

    def best_trials(
        self, kernel_class: str, family: str, limit: int, *, device_key: str | None = None
    ) -> list[TrialRecord]:
        """The fastest measured records of a class on a target family, fastest first."""

    def workload_trials(self, task_key: str, family: str, limit: int) -> list[TrialRecord]:
        """The fastest measured records of one workload, of all jobs, fastest first."""

    def donors(self, kernel_class: str, family: str, per_workload: int) -> list[TrialRecord]:
        """The fastest few records of every workload of a class, workloads in the order of their keys."""

    def workloads(self, kernel_class: str, family: str) -> list[WorkloadRecord]:
        """The workloads of a class on a target family, without payloads."""

    def kernel_classes(self, family: str) -> list[str]:
        """The kernel classes that have a workload on a target family, in alphabetical order."""

    def workload(self, task_key: str, tvm_version: str | None = None) -> WorkloadRecord | None:
        """A workload with its payload, of this TVM version or the newest added."""

    def bank(self) -> list[BankRow]:
        """What is known, by kernel class and target family."""

    def all_trials(self, family: str | None = None) -> Iterator[TrialRecord]:
        """Every record of the bank in the order of commitment, fetched piece by piece (an export)."""

    def prune_bank(self, keep_per_workload: int) -> int:
        """Drop all but the fastest records per workload and family, failures too.

        Trials of runs that may still go on are kept. Returns how many were dropped.
        """


class LogStore(Protocol):
    """What happened when; append-only and written in batches."""

    def add_spans(self, run: str, spans: Sequence[SpanRecord]) -> None:
        """Append spans."""

    def spans(self, run: str) -> list[SpanRecord]:
        """All spans of a run by their start."""

    def log_events(self, run: str, events: Sequence[EventRecord]) -> None:
        """Append to the core's log."""

    def events(self, run: str) -> list[EventRecord]:
        """The core's log in the order in which it was written."""


class Store(RunStore, JobStore, TrialStore, LogStore, Protocol):
    """Everything Tuneloom keeps. Get one from `open_store`, and close it."""

    @property
    def place(self) -> str:
        """The file or address of the store, without a password."""

    def close(self) -> None:
        """Let go of the database; the store can't be used afterwards."""
