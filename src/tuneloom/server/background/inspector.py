"""Looks into uploaded models beside the handlers, one at a time."""

import logging
import threading

from tuneloom.app.hosting.inspecting import inspect_upload
from tuneloom.errors import StoreError
from tuneloom.server.stores import StorePool
from tuneloom.store import ModelRecord, Store

_LOG = logging.getLogger("tuneloom.server")
_AGAIN_S = 30.0
_AT_ONCE = 16


class Inspector:
    """A thread that is woken by uploads; what an earlier server left unchecked is looked at, too."""

    def __init__(self, stores: StorePool) -> None:
        self._stores = stores
        self._wake = threading.Event()
        self._ending = False
        self._thread = threading.Thread(target=self._work, name="inspector", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def wake(self) -> None:
        """There is something new."""
        self._wake.set()

    def close(self) -> None:
        """End when the model at hand is done."""
        self._ending = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

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

    def _work(self) -> None:
        while not self._ending:
            try:
                if self.look():
                    continue
            except StoreError as error:
                _LOG.error("uploaded models can't be found: %s", error)
            self._wake.wait(_AGAIN_S)
            self._wake.clear()  # before looking at `_ending`, which is set before the wake
