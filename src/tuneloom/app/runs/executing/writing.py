"""What an executor writes about all its runs: trials before anything follows from them, the rest in time."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeVar

from tuneloom.app.kinds.base import JobProgress
from tuneloom.app.runs.executing.bookkeeping import Book
from tuneloom.app.runs.executing.held_run import HeldRun
from tuneloom.app.runs.executing.holding import HeldRuns
from tuneloom.app.runs.view import RunView, job_picture, resource_pictures
from tuneloom.errors import StoreError
from tuneloom.scheduling import Core, view
from tuneloom.scheduling.messages import Command, Event
from tuneloom.store import KeptTrial, Store, taken_over


class Snapshot:
    """Core and programs are asked once, however many runs are looked at."""

    def __init__(self, core: Core, policy: str, runs: Collection[HeldRun], now_s: float) -> None:
        seen = view(core, now_s)
        programs = {job: program for held in runs for job, program in held.programs.items()}
        self._policy = policy
        self._now_s = now_s
        self._states = {job.id: job for job in seen.jobs}
        self._progress: dict[str, JobProgress] = {job: p.progress(now_s) for job, p in programs.items()}
        names = {job: (program.spec.name, self._progress[job]) for job, program in programs.items()}
        self._resources = resource_pictures(seen, names)

    def of(self, held: HeldRun) -> RunView:
        """What a run looks like; it is one of those that the snapshot was made of."""
        jobs = (
            job_picture(
                program,
                self._progress[job],
                self._states.get(job),
                held.statuses[job],
                held.due_s.get(job, 0.0) - self._now_s,
                packing=job in held.packing,
            )
            for job, program in held.programs.items()
        )
        return RunView(
            run=held.id,
            policy=self._policy,
            at_s=held.book.on_run_clock(self._now_s),
            resources=self._resources,
            jobs=tuple(jobs),
        )

    def of_executor(self, run: str) -> RunView:
        """What its resources do, for the executor's own run, which has no jobs."""
        return RunView(run=run, policy=self._policy, at_s=self._now_s, resources=self._resources, jobs=())


_REST = 20.0  # looking at a thousand devices and writing that takes a while: at most a twentieth of the time

Part = TypeVar("Part")


class RunWriter:
    """Writes for several runs at once; a run that can't be written is let go, the others are written.

    What the core decides is logged in the `journal`: the book of the first run, or of the executor's own.
    """

    def __init__(
        self, store: Store, runs: HeldRuns, seen: Callable[[], Snapshot], now_s: Callable[[], float]
    ) -> None:
        self.journal: Book | None = None
        self._own = False
        self._shown: RunView | None = None
        self._store = store
        self._runs = runs
        self._seen = seen
        self._now_s = now_s
        self._look_s = 0.0

    def begin(self, journal: Book, policy: str, *, own: bool) -> None:
        """Log with this book from now on; `own` says that it belongs to the executor, not to a run."""
        self.journal, self._own = journal, own
        journal.core_began(policy)

    def decided(self, event: Event, commands: Sequence[Command]) -> None:
        """Note what the core decided."""
        if self.journal is not None:
            self.journal.decided(event, commands)

    def commit(self) -> None:
        """Commit the trials of all runs at once."""
        kept = {held.id: trials for held in self._runs if (trials := held.book.take_trials())}
        if not kept:
            return
        failures = _written(kept, lambda parts: self._store.keep_trials(_all(parts)))
        self._drop(failures)
        for run, trials in kept.items():
            if run not in failures:
                self._runs.held[run].committed(trials)

    def write_down(self) -> None:
        """Write what was noted, and what has come to look different: in one transaction, or none."""
        began_s = self._now_s()
        seen = self._seen() if began_s >= self._look_s else None
        pages = {held.id: held.page(seen.of(held) if seen is not None else None) for held in self._runs}
        if self.journal is not None and self.journal.run not in self._runs.held:
            own = self._own_view(seen) if self._own and seen is not None else None
            pages[self.journal.run] = self.journal.page(own)
        self._drop(_written(pages, self._store.write_pages))
        if seen is not None:
            self._look_s = began_s + _REST * (self._now_s() - began_s)

    def close(self) -> bool:
        """End the runs whose jobs have all ended; says whether somebody still wants something of one."""
        wanted = False
        for held in self._runs:
            if held.ended:
                with self._runs.guarding(held):
                    if held.close(self._seen().of(held)):
                        self._runs.forget(held)
                    else:
                        wanted = True
        return wanted

    def _drop(self, failures: Mapping[str, StoreError]) -> None:
        """Let runs go that could not be written; raises for the executor's own."""
        for run, error in failures.items():
            if run not in self._runs.held:
                raise error
            self._runs.drop(self._runs.held[run], error)

    def _own_view(self, seen: Snapshot) -> RunView | None:
        """What the executor's resources look like; None if that was written already."""
        assert self.journal is not None
        shown, self._shown = self._shown, seen.of_executor(self.journal.run)
        return None if self._shown.looks_like(shown) else self._shown


def _all(parts: Sequence[Sequence[KeptTrial]]) -> list[KeptTrial]:
    return [trial for part in parts for trial in part]


def _written(
    parts: Mapping[str, Part], write: Callable[[Sequence[Part]], Sequence[str]]
) -> dict[str, StoreError]:
    """Write what belongs to several runs at once, or run by run if that fails; returns errors by run."""
    try:
        return {run: taken_over(run) for run in write(list(parts.values()))}
    except StoreError as error:
        if len(parts) == 1:
            return dict.fromkeys(parts, error)
    failures: dict[str, StoreError] = {}
    for run, part in parts.items():
        failures |= _written({run: part}, write)
    return failures
