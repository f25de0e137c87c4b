"""The heartbeat of an executor: its leases are renewed while it makes progress, whatever it is busy with."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tuneloom.errors import StoreError
from tuneloom.store import Lease, Store

TTL_S = 30.0
"""How long a lease stands without a heartbeat; another host waits that long before it takes a run over."""

STALLED_S = 300.0
"""An executor that has made no progress for so long hangs."""


class Heartbeat:
    """A thread with a store of its own that renews leases three times as often as needed.

    A lease that was lost is not renewed any more; the executor finds out when it next writes.
    A store that can't be reached for a while is tried again at the next beat. While progress is
    followed, nothing is renewed once there was none for too long: others may then take the runs over.
    """

    def __init__(
        self,
        opened: Callable[[], Store],
        ttl_s: float = TTL_S,
        *,
        stalled_s: float = STALLED_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.opened = opened
        self._ttl_s = ttl_s
        self._stalled_s = stalled_s
        self._now_s = now_s
        self._progressed_s: float | None = None
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

    @contextmanager
    def following_progress(self) -> Iterator[None]:
        """Expect `progressed` again and again while entered."""
        self.progressed()
        try:
            yield
        finally:
            self._progressed_s = None

    def progressed(self) -> None:
        """The executor does not hang."""
        self._progressed_s = self._now_s()

    def renew(self, store: Store) -> None:
        """Renew the leases, unless the executor hangs."""
        progressed_s = self._progressed_s
        if progressed_s is not None and self._now_s() - progressed_s > self._stalled_s:
            return
        with self._lock:
            leases = list(self._leases.values())
        for run in store.renew_leases(leases, self._ttl_s):
            self.forget(run)

    def _beat(self) -> None:
        store: Store | None = None
        try:
            while not self._ending.wait(self._ttl_s / 3):
                try:
                    store = store or self.opened()
                    self.renew(store)
                except StoreError:
                    continue
        finally:
            if store is not None:
                store.close()
