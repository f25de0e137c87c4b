"""What a store promises.

A store is used by one thread of one process; other processes may read and write the
same store at the same time. Every method is one short transaction: when a writing
method returns, what it wrote survives `kill -9` and a power cut. Times are seconds
since the epoch unless a name says otherwise. Every method raises StoreError when the
database can't be reached, is locked for too long, or the disk is full.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from tuneloom.model import Task, Trial
from tuneloom.store.records import (
    EMPTY,
    BankRow,
    EventRecord,
    JobRecord,
    JobStatus,
    Json,
    KeptTrial,
    KnownKernel,
    Lease,
    Page,
    PlannedTask,
    Provenance,
    RunRecord,
    RunStatus,
    SpanRecord,
    TrialRecord,
    Wish,
    WishKind,
    WorkloadRecord,
)
from tuneloom.store.tenancy.api import ServiceStore


class RunStore(Protocol):
    """Runs and their notes."""

    def create_run(self, command: str, options: Mapping[str, Json] = EMPTY) -> RunRecord:
        """Begin a run owned by this process, under a new short id such as `amber-heron-42`."""

    def submit_run(
        self,
        command: str,
        jobs: Sequence[tuple[str, Mapping[str, Json]]],
        options: Mapping[str, Json] = EMPTY,
        *,
        holder: str | None = None,
        ttl_s: float = 30.0,
    ) -> RunRecord:
        """Leave a run with its jobs for an executor to take; all of it is written or nothing.

        With a `holder`, that executor has it from the very beginning.
        """

    def finish_run(
        self, run: str, status: RunStatus, message: str = "", *, unless_wished: bool = False
    ) -> bool:
        """End a run and its lease; `message` is one line for people.

        With `unless_wished` nothing happens, and the answer is False, while somebody wants
        something of the run: a job that is added at the last moment is never missed.
        """

    def runs(self, limit: int | None = None) -> list[RunRecord]:
        """Runs, newest first; one that nobody carries out any more counts as interrupted."""

    def run(self, name: str) -> RunRecord:
        """The run with this id, an unambiguous beginning of it, or the newest for `last`.

        Raises StoreError naming the newest runs if there is no such run.
        """

    def set_note(self, run: str, key: str, value: Json) -> None:
        """Keep a value with the run, replacing an earlier one of this key."""

    def notes(self, run: str) -> dict[str, Json]:
        """All notes of a run, in the order in which their keys were first set."""


class LeaseStore(Protocol):
    """Who carries out which run."""

    def take_run(self, run: str, holder: str, ttl_s: float) -> Lease:
        """Make `holder` the executor of a run, for so many seconds; again for its own holder is fine.

        Raises StoreError if another executor lives, or can't be known to be dead yet. From
        then on what this store writes for the run is refused with LeaseLost once another
        has taken it.
        """

    def claim_run(self, holder: str, ttl_s: float, *, beside: Collection[str] | None = None) -> Lease | None:
        """Take a run that waits, or whose executor is gone; None if there is none.

        Tenants take turns by their weights, priority and age decide among a tenant's own. With
        `beside`, only a waiting run of a tenant that has none among these runs is taken.
        """

    def renew_leases(self, leases: Collection[Lease], ttl_s: float) -> list[str]:
        """Hold leases for so many seconds from now; returns the runs that others have."""

    def release_run(self, lease: Lease, status: RunStatus, message: str = "") -> None:
        """Give a run back that has not ended; raises LeaseLost if another has it."""

    def lease_of(self, run: str) -> Lease | None:
        """The lease of a run, expired or not."""


class WishStore(Protocol):
    """What others want of a run."""

    def add_wish(
        self, run: str, kind: WishKind, job: str | None = None, body: Mapping[str, Json] = EMPTY
    ) -> Wish:
        """Leave a wish for the run's executor; raises StoreError if the run has ended."""

    def change_waiting(self, run: str, kind: WishKind, job: str, body: Mapping[str, Json] = EMPTY) -> bool:
        """Pause, resume, cancel or prioritise a job of a run that waits, at once.

        False, and nothing is changed, if an executor has the run or the job has ended. A run whose
        last job is cancelled ends.
        """

    def open_wishes(self, *runs: str) -> list[Wish]:
        """Wishes for these runs that were not applied yet, in the order in which they came."""

    def close_wish(self, wish: Wish) -> None:
        """Note that a wish was applied."""


class JobStore(Protocol):
    """Jobs and their tasks."""

    def add_job(self, run: str, name: str, spec: Mapping[str, Json] = EMPTY) -> JobRecord:
        """Add a waiting job to a run and wish for it to be taken.

        Raises StoreError if the run has ended, or has a job of this name.
        """

    def set_job(self, job: str, status: JobStatus, result: Mapping[str, Json] | None = None) -> None:
        """Move a job; running notes the start once, an ended status notes the end.

        A `result` replaces the earlier one; None keeps it.
        """

    def set_priority(self, job: str, priority: int) -> None:
        """Give a job another priority, for whoever executes its run now or later."""

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

    def keep_trials(self, kept: Sequence[KeptTrial]) -> list[str]:
        """Commit trials of any runs in one transaction; those of runs that were lost are left out.

        Returns the runs that were lost, as `write_pages` does. When this returns, the others survive
        anything; if it raises, none was committed.
        """

    def trials(self, job: str, task_key: str | None = None) -> list[TrialRecord]:
        """The trials of a job, or of one task of it, in the order in which they were committed."""

    def trial_count(self, job: str) -> int:
        """How many trials of the job are committed, failures among them."""

    def best_trials(
        self, kernel_class: str, family: str, limit: int, *, device_key: str | None = None
    ) -> list[TrialRecord]:
        """The fastest measured records of a class on a target family, fastest first."""

    def workload_trials(
        self, task_key: str, family: str, limit: int, *, reader: str | None = None
    ) -> list[TrialRecord]:
        """The fastest measured records of one workload, of all jobs, fastest first.

        With a `reader`, here and below, only what that tenant may learn from: its own records, those
        that no tenant made, and those of tenants who share theirs.
        """

    def donors(self, kernel_class: str, family: str, per_workload: int) -> list[TrialRecord]:
        """The fastest few records of every workload of a class, workloads in the order of their keys."""

    def workloads(self, kernel_class: str, family: str, *, reader: str | None = None) -> list[WorkloadRecord]:
        """The workloads of a class on a target family, without payloads; for a reader, those with records."""

    def kernel_classes(self, family: str) -> list[str]:
        """The kernel classes that have a workload on a target family, in alphabetical order."""

    def workload(self, task_key: str, tvm_version: str | None = None) -> WorkloadRecord | None:
        """A workload with its payload, of this TVM version or the newest added."""

    def bank(self, *, reader: str | None = None) -> list[BankRow]:
        """What is known, by kernel class and target family."""

    def known_kernels(
        self,
        *,
        kernel_class: str | None = None,
        family: str | None = None,
        text: str | None = None,
        after: str = "",
        limit: int = 50,
        reader: str | None = None,
    ) -> list[KnownKernel]:
        """What is known of single kernels, best first per device; a page of `limit` workloads by their keys.

        `text` is a part of the name or of the shapes, `after` the key of the last workload seen.
        """

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

    def clock_of(self, run: str) -> float:
        """When the last span of a run ended; 0 without one."""

    def log_events(self, run: str, events: Sequence[EventRecord]) -> None:
        """Append to the core's log."""

    def events(self, run: str) -> list[EventRecord]:
        """The core's log in the order in which it was written."""

    def write_pages(self, pages: Sequence[Page]) -> list[str]:
        """Write what was noted about several runs in one transaction; none at all if all pages are blank.

        Returns the runs that other executors have taken over, of which nothing is written.
        """

    def view(self, run: str) -> Mapping[str, Json] | None:
        """What the run looked like last."""


class BlobStore(Protocol):
    """Files by digest (SHA-256 in hexadecimal), each kept for as long as it has an owner."""

    def put_blob(self, pieces: Iterable[bytes], owner: str) -> str:
        """Keep a file for an owner; returns its digest. The same content is kept once."""

    def use_blob(self, digest: str, owner: str) -> None:
        """Make another owner of a file; raises StoreError if it is not there."""

    def has_blob(self, digest: str) -> bool:
        """Whether a file is there."""

    def blob(self, digest: str) -> Iterator[bytes]:
        """A file's content in pieces; raises StoreError if it is not there."""

    def drop_blobs(self, owner: str) -> int:
        """Let go of all files of an owner; returns how many had no other and were removed."""

    def unused_blobs(self) -> list[tuple[str, int]]:
        """Digests and sizes of files that nobody owns and that are not on their way to an owner."""

    def remove_unused_blobs(self, digests: Iterable[str]) -> None:
        """Remove those of these files that still nobody owns."""


class Store(
    RunStore, LeaseStore, WishStore, JobStore, TrialStore, LogStore, BlobStore, ServiceStore, Protocol
):
    """Everything Tuneloom keeps. Get one from `open_store`, and close it."""

    @property
    def place(self) -> str:
        """The file or address of the store, without a password."""

    def close(self) -> None:
        """Let go of the database; the store can't be used afterwards."""
