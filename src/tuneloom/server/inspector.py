"""Looks into uploaded models beside the handlers, one at a time."""

import logging
import threading

from tuneloom.app.service.inspecting import inspect_upload
from tuneloom.errors import StoreError
from tuneloom.server.stores import StorePool

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
        """Look into what waits; says how many models that were."""
        with self._stores.lent() as store:
            waiting = store.unchecked_models(_AT_ONCE)
            for record in waiting:
                inspect_upload(store, record)
        return len(waiting)

    def _work(self) -> None:
        while not self._ending:
            self._wake.clear()
            try:
                if self.look():
                    continue
            except StoreError as error:
                _LOG.error("uploaded models can't be looked into: %s", error)
            self._wake.wait(_AGAIN_S)
