"""What is done again and again beside the handlers: looking into uploads, removing what is too old."""

import logging
import threading
from abc import ABC, abstractmethod

from tuneloom.app.hosting.retention import Retention, collect
from tuneloom.app.hosting.uploads import inspect_upload
from tuneloom.errors import StoreError
from tuneloom.server.stores import StorePool
from tuneloom.store import ModelRecord, Store

_LOG = logging.getLogger("tuneloom.server")
_AT_ONCE = 16


class Chore(ABC):
    """A thread that looks for work every so often, when it is woken, and `at_once` after it found some."""

    name: str
    every_s: float
    at_once: bool = False

    def __init__(self, stores: StorePool) -> None:
        self._stores = stores
        self._wake = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def wake(self) -> None:
        """There is something new."""
        self._wake.set()

    def close(self) -> None:
        """End when what is at hand is done."""
        self._ending = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    @abstractmethod
    def look(self) -> int:
        """Do what there is to do; says how much that was."""

    def _work(self) -> None:
        while not self._ending:
            try:
                if self.look() and self.at_once:
                    continue
            except StoreError as error:
                _LOG.error("the %s can't use the store: %s", self.name, error)
            self._wake.wait(self.every_s)
            self._wake.clear()  # before looking at `_ending`, which is set before the wake


class Inspector(Chore):
    """Looks into uploaded models, one at a time; what an earlier server left unchecked, too."""

    name, every_s, at_once = "inspector", 30.0, True

    def look(self) -> int:
        """Look into what waits; says how many models were done."""
        with self._stores.lent() as store:
            waiting = store.unchecked_models(_AT_ONCE)
            return sum(self._looked_into(store, record) for record in waiting)

    def _looked_into(self, store: Store, record: ModelRecord) -> bool:
        """Look into one model; whatever happens, those behind it get their turn."""
        try:
            inspect_upload(store, record)
        except (StoreError, OSError) as error:
            _LOG.error("model %s of %s can't be looked into: %s", record.digest[:12], record.tenant, error)
            return False
        return True


class Sweeper(Chore):
    """Removes what is too old once an hour, the first time soon after the start."""

    name, every_s = "sweeper", 3600.0

    def __init__(self, stores: StorePool, retention: Retention) -> None:
        super().__init__(stores)
        self._retention = retention

    def start(self) -> None:
        """Begin, if anything is ever to be removed."""
        if self._retention != Retention():
            super().start()

    def look(self) -> int:
        """Remove what is too old; says how much that was."""
        count = 0
        with self._stores.lent() as store:
            for removal in collect(store, self._retention):
                _LOG.info("removed %s %s", removal.kind, removal.name)
                count += 1
        return count
