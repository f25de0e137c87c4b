"""An executor: takes runs over under leases and carries out their jobs in one core, woven together."""

import logging
import os
import secrets
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol, runtime_checkable

from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.conducting.interruptions import Interruptions
from tuneloom.app.conducting.listening import Listener, Span
from tuneloom.app.farm.aiming import Aiming, as_it_is
from tuneloom.app.runs.executing.aims import Aims
from tuneloom.app.runs.executing.bookkeeping import Book
from tuneloom.app.runs.executing.heartbeat import TTL_S, Heartbeat
from tuneloom.app.runs.executing.held_run import HeldRun, TrialListener
from tuneloom.app.runs.executing.shares import ShareBook
from tuneloom.app.runs.executing.snapshot import Snapshot
from tuneloom.app.runs.files import files_of
from tuneloom.app.runs.view import RunView
from tuneloom.engine.api import Engine
from tuneloom.engine.machine import Offer, Resources
from tuneloom.errors import LeaseLost, TargetError, TuneloomError
from tuneloom.model import JobSpec
from tuneloom.scheduling import Core, policy_named
from tuneloom.scheduling.messages import Command, Event
from tuneloom.store import JobRecord, JobStatus, Lease, RunStatus, Store, Wish, WishKind

_LOG = logging.getLogger("tuneloom.runs")
_LOOK_S = 1.0
_ONE_AT_A_TIME = ("sequential", "synchronous", "interleaved")
_LANES = 3
_DRAIN_S = 60.0
_CROWDED = (
    4  # no tenant waits for another's long jobs while an executor has fewer runs than so many times its own
)
_SLOTS_PER_LANE = 4  # a batch keeps about so many build slots busy while others are selected


class Interrupted(TuneloomError):  # noqa: N818 - the name is the message
    """The user ended the run; everything measured is kept."""

    exit_code = 130


class Drained(Exception):  # noqa: N818 - the name is the message
    """Nothing runs any more, as asked for."""


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


class Executor(Listener):
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
        machine: Resources,
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
        self.runs: dict[str, HeldRun] = {}
        self.lost: list[str] = []
        self._store = store
        self._engine = engine
        self._heartbeat = heartbeat
        self._display = display
        self._on_trial = on_trial
        self._most_runs = most_runs
        self._news = news
        self._draining_since_s: float | None = None
        self._claimed_lately = True
        self._interruptions = Interruptions()
        self._looked_s = self._shown_s = 0.0
        self._left: list[HeldRun] = []
        self._given_workers: set[str] = set()
        self._journal: Book | None = None
        self._own = False
        self._shown: RunView | None = None
        self._offers: dict[str, Offer] = {}
        self.conductor = Conductor(Core(policy_named(policy)), engine, self)
        self._aims = Aims(self.conductor, aim, self._take)
        self._shares = ShareBook(store, self.conductor.share_used) if most_runs else None

    def hold(self, lease: Lease) -> HeldRun:
        """Take the jobs of a run that is ours now."""
        self._heartbeat.watch(lease)
        book = Book(self._store, lease.run, self.conductor.now_s())
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
        )
        self.runs[lease.run] = held
        if self._journal is None:
            self._begin(book)
        else:
            book.logged_with(self._journal.run)
            for offer in self._offers.values():
                book.resource_joined(offer, self.conductor.now_s())
        self._take_new_jobs(held)
        return held

    def begin(self, own: Book) -> None:
        """Bring the resources in; what they do and what the core decides is written to a run of its own."""
        self._own = True
        self._begin(own)

    def _begin(self, journal: Book) -> None:
        self._journal = journal
        journal.core_began(self.policy)
        self.conductor.add_machine(self.machine)
        journal.flush()

    def take(self, run: str) -> HeldRun:
        """Hold the run of this name; raises StoreError if another executor has it."""
        return self.hold(self._store.take_run(run, self.holder, TTL_S))

    def execute(self, keep_waiting: Callable[[], bool] = lambda: False) -> None:
        """Go on until every run that is held has ended; raises Interrupted on Ctrl-C or SIGTERM."""
        try:
            self._engine.prepare()
            with self._interruptions:
                self._conduct(lambda: bool(self.runs) or keep_waiting())
        except Drained:
            self._give_back(RunStatus.WAITING, "given back by an executor that ended")
        except KeyboardInterrupt as error:
            self._give_back(RunStatus.INTERRUPTED, "ended by the user")
            names = " ".join(held.id for held in self._left) or "last"
            note = "interrupted; everything measured is kept"
            raise Interrupted(f"{note}: tuneloom resume {names}") from error
        finally:
            self._engine.close()
            for held in (*self.runs.values(), *self._left):
                held.discard_unfinished()

    def _conduct(self, keep_waiting: Callable[[], bool]) -> None:
        """Run until nothing is left; a run that another executor has now is dropped, the others go on."""
        while True:
            try:
                self.conductor.run(keep_waiting)
                return
            except LeaseLost as error:
                if error.run not in self.runs:
                    raise
                self._drop(self.runs[error.run])

    def serve(self, *, until_idle: bool = False) -> None:
        """Claim runs and carry them out until asked to end, or until there are none left."""
        self.execute(lambda: not until_idle or self._claimed_lately)

    def _give_back(self, status: RunStatus, message: str) -> None:
        for held in list(self.runs.values()):
            with suppress(LeaseLost):  # then it is another's already
                held.book.flush()
                self._store.release_run(held.lease, status, message)
            self._forget(held)
            self._left.append(held)

    def happened(self, event: Event, commands: Sequence[Command]) -> None:
        if self._journal is not None:
            self._journal.decided(event, commands)

    def resource_joined(self, offer: Offer, at_s: float) -> None:
        self._offers[offer.resource.name] = offer
        for held in self.runs.values():
            held.book.resource_joined(offer, at_s)

    def resource_left(self, name: str, reason: str, at_s: float) -> None:
        self._offers.pop(name, None)
        for held in self.runs.values():
            held.book.resource_left(name, reason, at_s)

    def resource_disturbed(self, name: str, by: str, at_s: float) -> None:
        for held in self.runs.values():
            held.book.resource_disturbed(name, by, at_s)
        if by and self._is_wanted(name):
            _LOG.warning("%s is also used by %s: its times may be wrong", name, by)

    def _is_wanted(self, device: str) -> bool:
        """Whether a job measures on such a device."""
        key = getattr(self._offers[device].resource, "key", None)
        programs = (program for held in self.runs.values() for program in held.programs.values())
        return any(program.spec.device_key == key for program in programs)

    def ran(self, span: Span) -> None:
        held = self._of(span.job)
        if held is not None:
            held.book.ran(span)

    def device_used(self, job: str, key: str, seconds: float) -> None:
        held = self._of(job)
        if self._shares is not None and held is not None and held.share is not None:
            self._shares.used(held.share.tenant, key, seconds)

    def job_refused(self, job: str, reason: str) -> None:
        self._end(job, JobStatus.FAILED, TargetError(reason, field="device"))

    def job_ended(self, job: str, *, cancelled: bool) -> None:
        held = self._of(job)
        program = held.programs.get(job) if held else None
        if held is None or program is None:
            return
        if cancelled:
            self._end(job, JobStatus.CANCELLED, None)
            return
        failure = program.failure or program.complete(held.id)
        self._end(job, JobStatus.FAILED if failure else JobStatus.FINISHED, failure)

    def job_failed(self, job: str, error: Exception) -> None:
        held = self._of(job)
        if held is not None and job in held.programs:
            held.break_off(job, error)

    def beat(self, now_s: float) -> None:
        if self._most_runs:
            self._drain_if_asked(now_s)
        else:
            self._interruptions.check()
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            self._grant_wishes(*self.runs)
            self._write_down(now_s)
            if self._shares is not None:
                self._shares.settle()
            self._claim()
        elif self._news():
            self._grant_wishes(*self.runs)
            self._claim()
        for held in list(self.runs.values()):
            if held.ended:
                self._close(held)
        if self._display is not None and now_s - self._shown_s >= self._display.every_s:
            self._shown_s = now_s
            seen = self._seen(now_s)
            for held in self.runs.values():
                self._display.show(seen.of(held))

    def _claim(self) -> None:
        """Take what waits while there is room; a tenant that has nothing here yet may go beyond."""
        while self._draining_since_s is None and len(self.runs) < _CROWDED * self._most_runs:
            full = len(self.runs) >= self._most_runs
            lease = self._store.claim_run(self.holder, TTL_S, beside=list(self.runs) if full else None)
            self._claimed_lately = lease is not None
            if lease is None:
                return
            self.hold(lease)

    def _drain_if_asked(self, now_s: float) -> None:
        """Start nothing more once asked to end; raise Drained when nothing runs, or takes too long."""
        if self._draining_since_s is None:
            if not self._interruptions.asked:
                return
            self._draining_since_s = now_s
            for job in list(self.conductor.core.jobs):
                self.conductor.pause(job)
        running = any(job.running for job in self.conductor.core.jobs.values())
        if not running or now_s - self._draining_since_s > _DRAIN_S:
            raise Drained

    def _seen(self, now_s: float) -> Snapshot:
        return Snapshot(self.conductor.core, self.policy, self.runs.values(), now_s)

    def _grant_wishes(self, *runs: str) -> None:
        """Do what others want, in the order in which they came."""
        for wish in self._store.open_wishes(*runs):
            self._apply(self.runs[wish.run], wish)
            self._store.close_wish(wish)

    def _write_down(self, now_s: float) -> None:
        """Write what was noted, and what has come to look different: in one transaction, or none."""
        seen = self._seen(now_s)
        pages = [held.page(seen.of(held)) for held in self.runs.values()]
        if self._journal is not None and self._journal.run not in self.runs:
            pages.append(self._journal.page(self._own_view(seen) if self._own else None))
        for run in self._store.write_pages(pages):
            if run in self.runs:
                self._drop(self.runs[run])

    def _own_view(self, seen: Snapshot) -> RunView | None:
        """What the executor's resources look like; None if that was written already."""
        assert self._journal is not None
        shown, self._shown = self._shown, seen.of_executor(self._journal.run)
        return None if self._shown.looks_like(shown) else self._shown

    def _apply(self, held: HeldRun, wish: Wish) -> None:
        if wish.kind is WishKind.ADD:
            self._take_new_jobs(held)
            return
        job = wish.job
        if job is None or job not in held.statuses or held.statuses[job].ended:
            return
        match wish.kind:
            case WishKind.CANCEL:
                if self._aims.drop(job):
                    held.end(job, JobStatus.CANCELLED, None)
                self.conductor.cancel(job)
            case WishKind.PAUSE:
                self.conductor.pause(job)
                self._move(held, job, JobStatus.PAUSED)
            case WishKind.UNPAUSE:
                self.conductor.resume(job)
                self._move(held, job, JobStatus.RUNNING)
            case WishKind.PRIORITY:
                self.conductor.prioritise(job, int(wish.body["priority"]))

    def _move(self, held: HeldRun, job: str, status: JobStatus) -> None:
        held.statuses[job] = status
        self._store.set_job(job, status)

    def _take_new_jobs(self, held: HeldRun) -> None:
        for record in held.new_jobs():
            self._aims.begin(held, record)

    def _take(self, held: HeldRun, record: JobRecord, spec: JobSpec) -> None:
        program = held.take(record, spec)
        if held.statuses[record.id] is JobStatus.PAUSED:
            self.conductor.pause(record.id)
        self.conductor.submit(program, held.due_s[record.id], files_of(program.spec))

    def _end(self, job: str, status: JobStatus, failure: TuneloomError | None) -> None:
        held = self._of(job)
        if held is not None and job in held.programs:
            held.end(job, status, failure)

    def _close(self, held: HeldRun) -> None:
        """End a run whose jobs have all ended; if others came in at the last moment, take those."""
        if held.close(self._seen(self.conductor.now_s()).of(held)):
            self._forget(held)
        else:
            self._grant_wishes(held.id)

    def _drop(self, held: HeldRun) -> None:
        """Another executor has the run: stop what we do for it and write nothing more."""
        self._forget(held)
        self._left.append(held)
        self.lost.append(held.id)
        for job, status in held.statuses.items():
            if not status.ended:
                self._aims.drop(job)
                self.conductor.cancel(job)

    def _forget(self, held: HeldRun) -> None:
        self.runs.pop(held.id, None)
        self._heartbeat.forget(held.id)

    def _of(self, job: str) -> HeldRun | None:
        return self.runs.get(job.rpartition(".")[0])

    @property
    def _lanes(self) -> int:
        if self.policy in _ONE_AT_A_TIME:
            return 1
        return _LANES + self.machine.slots // _SLOTS_PER_LANE
