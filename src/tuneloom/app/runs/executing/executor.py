"""An executor: takes runs over under leases and carries out their jobs in one core, woven together."""

import gc
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.farm.aiming import Aiming, as_it_is
from tuneloom.app.hosting.bundles import put_bundle
from tuneloom.app.runs.executing.bookkeeping import Book
from tuneloom.app.runs.executing.claiming import Claiming, Drained
from tuneloom.app.runs.executing.granting import Aims, Granting
from tuneloom.app.runs.executing.heartbeat import TTL_S, Heartbeat
from tuneloom.app.runs.executing.held_run import HeldRun, TrialListener
from tuneloom.app.runs.executing.holding import HeldRuns
from tuneloom.app.runs.executing.run_listener import RunListener, ShareBook
from tuneloom.app.runs.executing.writing import RunWriter, Snapshot
from tuneloom.app.runs.files import files_of
from tuneloom.app.runs.view import RunView
from tuneloom.engine.api import Engine
from tuneloom.engine.machine import Fleet
from tuneloom.errors import StoreError, TuneloomError
from tuneloom.model import JobSpec
from tuneloom.scheduling import Core, policy_named
from tuneloom.store import JobRecord, JobStatus, Lease, RunStatus, Store

_LOOK_S = 1.0
_ONE_AT_A_TIME = ("sequential", "synchronous", "interleaved")
_LANES = 3
_SLOTS_PER_LANE = 4  # a batch keeps about so many build slots busy while others are selected
_OBJECTS_BETWEEN_COLLECTIONS = 50_000


class Interrupted(TuneloomError):  # noqa: N818 - the name is the message
    """The user ended the run; everything measured is kept."""

    exit_code = 130


class Display(Protocol):
    """Shows a run while it goes on."""

    every_s: float

    def show(self, view: RunView) -> None:
        """Called about that often."""


@runtime_checkable
class Patient(Protocol):
    """A display that also says what is being waited for before the run begins."""

    def wait(self, words: str) -> None:
        """Called a few times a second."""


def new_holder() -> str:
    """A name for an executor that no other has."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Look for cyclic garbage rarely: there is little, and an executor has many objects to look through."""
    usual = gc.get_threshold()
    gc.set_threshold(usual[0] and max(usual[0], _OBJECTS_BETWEEN_COLLECTIONS), *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)


class Executor:
    """Carries out the runs it holds until all have ended; used by one thread.

    Other processes add jobs and leave wishes in the store while it does. With `most_runs` it
    claims runs that wait, or whose executors are gone, while it holds fewer than that, as soon as
    there are `news` and about once a second; asked
    to end, it then lets running stages come to their end and gives its runs back. `aim` fits the target
    of a job to its device; while devices are asked for that, other jobs go on.
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        machine: Fleet,
        policy: str,
        heartbeat: Heartbeat,
        *,
        display: Display | None = None,
        on_trial: TrialListener | None = None,
        most_runs: int = 0,
        news: Callable[[], bool] = lambda: False,
        aim: Callable[[JobSpec], Aiming] = as_it_is,
    ) -> None:
        self.machine = machine
        self.policy = policy
        self.holder = new_holder()
        self._store = store
        self._engine = engine
        self._heartbeat = heartbeat
        self._display = display
        self._on_trial = on_trial
        self._news = news
        self._looked_s = self._shown_s = 0.0
        self._given_workers: set[str] = set()
        self._packers = ThreadPoolExecutor(1, thread_name_prefix="packing")
        self._runs = HeldRuns(store, heartbeat, lambda job: self.conductor.abandon(job), logged=most_runs > 0)
        self._writer = RunWriter(store, self._runs, self._seen, lambda: self.conductor.now_s())
        self._shares = ShareBook(store, lambda *use: self.conductor.share_used(*use)) if most_runs else None
        self.listener = RunListener(self._runs, self._writer, self._shares, self.beat)
        self.conductor = Conductor(Core(policy_named(policy)), engine, self.listener)
        self._aims = Aims(self.conductor, self._runs, aim, self._take)
        self._granting = Granting(store, self._runs, self.conductor, self._aims, self._take_new_jobs)
        self._claiming = Claiming(
            store, self._runs, self.conductor, self.hold, holder=self.holder, most_runs=most_runs
        )

    @property
    def runs(self) -> dict[str, HeldRun]:
        """The runs that are carried out now, by name."""
        return self._runs.held

    @property
    def lost(self) -> list[str]:
        """The runs that other executors took over."""
        return self._runs.lost

    @property
    def failures(self) -> dict[str, StoreError]:
        """Why runs had to be given up that could not be written any more."""
        return self._runs.failures

    def hold(self, lease: Lease) -> HeldRun:
        """Take the jobs of a run that is ours now."""
        book = Book(self._store, lease.run, self.conductor.now_s())
        book.clock_set(self.conductor.zero_s)
        held = HeldRun(
            store=self._store,
            lease=lease,
            book=book,
            lanes=self._lanes,
            workers=self.machine.slots,
            cores_of=self.machine.cores_of,
            on_trial=self._on_trial,
            given_workers=self._given_workers,
            share=self._store.share_of(lease.run),
            is_only_job=self._has_one_job,
            pack=self._pack,
        )
        self._runs.add(held)
        journal = self._writer.journal
        if journal is None:
            self.begin(book, own=False)
        else:
            book.logged_with(journal.run)
            self.listener.introduce(book, self.conductor.now_s())
        with self._runs.guarding(held):
            self._take_new_jobs(held)
        return held

    def _pack(self, run: str, folder: Path) -> "Future[tuple[str, int]]":
        """Begin to put a bundle into the store, beside the conductor."""
        return self._packers.submit(put_bundle, self._heartbeat.opened, run, folder)

    def begin(self, journal: Book, *, own: bool = True) -> None:
        """Bring the resources in; what the core decides is written to this book, of a run of our own."""
        self._writer.begin(journal, self.policy, own=own)
        self.conductor.add_machine(self.machine)
        journal.flush()

    def _has_one_job(self) -> bool:
        """Whether one job is left of all runs, on one machine."""
        statuses = [status for held in self._runs for status in held.statuses.values()]
        return self.machine.is_one_machine and sum(not status.ended for status in statuses) == 1

    def take(self, run: str) -> HeldRun:
        """Hold the run of this name; raises StoreError if another executor has it."""
        return self.hold(self._store.take_run(run, self.holder, TTL_S))

    def execute(self, keep_waiting: Callable[[], bool] = lambda: False) -> None:
        """Go on until every run that is held has ended; raises Interrupted on Ctrl-C or SIGTERM."""
        try:
            self._engine.prepare()
            with self._claiming.interruptions, self._heartbeat.following_progress(), _collecting_rarely():
                self.conductor.run(lambda: bool(self.runs) or keep_waiting())
        except Drained:
            self._writer.commit()
            self._runs.give_back(RunStatus.WAITING, "given back by an executor that ended")
        except KeyboardInterrupt as error:
            self._writer.commit()
            names = " ".join(self._runs.give_back(RunStatus.INTERRUPTED, "ended by the user")) or "last"
            note = "interrupted; everything measured is kept"
            raise Interrupted(f"{note}: tuneloom resume {names}") from error
        finally:
            self._engine.close()
            self._packers.shutdown(cancel_futures=True)
            self._runs.discard_unfinished()

    def serve(self, *, until_idle: bool = False) -> None:
        """Claim runs and carry them out until asked to end, or until there are none left."""
        self.execute(lambda: not until_idle or self._claiming.lately)

    def beat(self, now_s: float) -> None:
        """See to what others want and to what has to be written; called a few times a second."""
        self._heartbeat.progressed()
        self._claiming.end_if_asked(now_s)
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._granting.grant()
            self._writer.write_down()
            if self._shares is not None:
                self._shares.settle()
            self._claiming.claim()
        elif self._news():
            self._granting.grant()
            self._claiming.claim()
        for held in self._runs:
            with self._runs.guarding(held):
                held.note_packed()
        if self._writer.close():
            self._granting.grant()
        if self._display is not None and now_s - self._shown_s >= self._display.every_s:
            self._shown_s = now_s
            seen = self._seen()
            for held in self._runs:
                self._display.show(seen.of(held))

    def _seen(self) -> Snapshot:
        return Snapshot(self.conductor.core, self.policy, self.runs.values(), self.conductor.now_s())

    def _take_new_jobs(self, held: HeldRun) -> None:
        for record in held.new_jobs():
            self._aims.begin(held, record)

    def _take(self, held: HeldRun, record: JobRecord, spec: JobSpec) -> None:
        program = held.take(record, spec)
        if held.statuses[record.id] is JobStatus.PAUSED:
            self.conductor.pause(record.id)
        self.conductor.submit(program, held.due_s[record.id], files_of(program.spec))

    @property
    def _lanes(self) -> int:
        if self.policy in _ONE_AT_A_TIME:
            return 1
        return _LANES + self.machine.slots // _SLOTS_PER_LANE
