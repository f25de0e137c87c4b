"""Removes what is too old while the server runs."""

import logging
import threading

from tuneloom.app.hosting.retention import Retention, collect
from tuneloom.errors import StoreError
from tuneloom.server.stores import StorePool

_LOG = logging.getLogger("tuneloom.server")
_EVERY_S = 3600.0


class Sweeper:
    """A thread that looks once an hour, the first time soon after the start."""

    def __init__(self, stores: StorePool, retention: Retention) -> None:
        self._stores = stores
        self._retention = retention
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="sweeper", daemon=True)

    def start(self) -> None:
        """Begin, if anything is ever to be removed."""
        if self._retention != Retention():
            self._thread.start()

    def close(self) -> None:
        """End when what is at hand is done."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def sweep(self) -> int:
        """Remove what is too old; says how much that was."""
        count = 0
        with self._stores.lent() as store:
            for removal in collect(store, self._retention):
                _LOG.info("removed %s %s", removal.kind, removal.name)
                count += 1
        return count

    def _work(self) -> None:
        while not self._ending.is_set():
            try:
                self.sweep()
            except StoreError as error:
                _LOG.error("what is too old can't be removed: %s", error)
            self._ending.wait(_EVERY_S)
