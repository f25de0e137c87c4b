"""The runs that an executor carries out, and those that it had to let go."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tuneloom.app.runs.executing.heartbeat import Heartbeat
from tuneloom.app.runs.executing.held_run import HeldRun
from tuneloom.errors import LeaseLost, StoreError
from tuneloom.store import RunStatus, Store

_LOG = logging.getLogger("tuneloom.runs")


class HeldRuns:
    """Runs by name. What goes wrong while one is written ends that one here, and no other.

    `lost` are those that another executor has now, `failures` what kept others from being written;
    these are logged unless somebody asks for them in the end. `abandon` ends a job without telling anybody.
    """

    def __init__(
        self, store: Store, heartbeat: Heartbeat, abandon: Callable[[str], None], *, logged: bool
    ) -> None:
        self.held: dict[str, HeldRun] = {}
        self.lost: list[str] = []
        self.failures: dict[str, StoreError] = {}
        self._left: list[HeldRun] = []
        self._store = store
        self._heartbeat = heartbeat
        self._abandon = abandon
        self._logged = logged

    def __iter__(self) -> Iterator[HeldRun]:
        return iter(list(self.held.values()))

    def of(self, job: str) -> HeldRun | None:
        """The run that a job belongs to, if it is held."""
        return self.held.get(job.rpartition(".")[0])

    def add(self, held: HeldRun) -> None:
        """A run is ours from now on; its lease is renewed."""
        self.held[held.id] = held
        self._heartbeat.watch(held.lease)

    def forget(self, held: HeldRun) -> None:
        """A run is not ours any more; its lease is not renewed."""
        self.held.pop(held.id, None)
        self._heartbeat.forget(held.id)

    @contextmanager
    def guarding(self, held: HeldRun) -> Iterator[None]:
        """Let a run go if it can't be written."""
        try:
            yield
        except StoreError as error:
            self.drop(held, error)

    def drop(self, held: HeldRun, error: StoreError) -> None:
        """Stop what is done for a run and write nothing more about it; it can be claimed again later."""
        if self.held.get(held.id) is not held:
            return
        self._leave(held)
        for job, status in held.statuses.items():
            if not status.ended:
                self._abandon(job)
        if isinstance(error, LeaseLost):
            self.lost.append(held.id)
            return
        if self._logged:
            _LOG.warning("run %s can't be written and is given back: %s", held.id, error)
        self.failures[held.id] = error
        with suppress(StoreError):
            self._store.release_run(held.lease, RunStatus.INTERRUPTED, str(error))

    def give_back(self, status: RunStatus, message: str) -> list[str]:
        """Leave all runs to other executors, or to the user; returns their names."""
        names = list(self.held)
        for held in self:
            with suppress(LeaseLost):  # then it is another's already
                held.note_packed(wait=True)
                held.book.flush()
                self._store.release_run(held.lease, status, message)
            self._leave(held)
        return names

    def discard_unfinished(self) -> None:
        """Leave no half bundle behind."""
        for held in (*self, *self._left):
            held.discard_unfinished()

    def _leave(self, held: HeldRun) -> None:
        self.forget(held)
        self._left.append(held)
