"""What an executor writes about all its runs: trials before anything follows from them, the rest in time."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tuneloom.app.runs.executing.bookkeeping import Book
from tuneloom.app.runs.executing.holding import HeldRuns
from tuneloom.app.runs.executing.snapshot import Snapshot
from tuneloom.app.runs.view import RunView
from tuneloom.errors import StoreError
from tuneloom.scheduling.messages import Command, Event
from tuneloom.store import KeptTrial, Store, taken_over

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
