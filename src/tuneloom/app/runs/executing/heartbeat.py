"""The heartbeat of an executor: its leases are renewed while its process lives, whatever it is busy with."""

import threading
from collections.abc import Callable

from tuneloom.errors import StoreError
from tuneloom.store import Lease, Store

TTL_S = 30.0
"""How long a lease stands without a heartbeat; another host waits that long before it takes a run over."""


class Heartbeat:
    """A thread with a store of its own that renews leases three times as often as needed.

    A lease that was lost is not renewed any more; the executor finds out when it next writes.
    A store that can't be reached for a while is tried again at the next beat.
    """

    def __init__(self, opened: Callable[[], Store], ttl_s: float = TTL_S) -> None:
        self._opened = opened
        self._ttl_s = ttl_s
        self._leases: dict[str, Lease] = {}
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def watch(self, lease: Lease) -> None:
        """Renew a lease from now on."""
        with self._lock:
            self._leases[lease.run] = lease

    def forget(self, run: str) -> None:
        """Renew the lease of a run no more."""
        with self._lock:
            self._leases.pop(run, None)

    def _beat(self) -> None:
        store: Store | None = None
        try:
            while not self._ending.wait(self._ttl_s / 3):
                try:
                    store = store or self._opened()
                    self._renew(store)
                except StoreError:
                    continue
        finally:
            if store is not None:
                store.close()

    def _renew(self, store: Store) -> None:
        with self._lock:
            leases = list(self._leases.values())
        for run in store.renew_leases(leases, self._ttl_s):
            self.forget(run)
