"""Stores for the threads of a server: each is used by one thread at a time."""

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tuneloom.store import Store


class StorePool:
    """Lends stores; opens at most `most`, then callers wait for one that comes back."""

    def __init__(self, opened: Callable[[], Store], most: int = 8) -> None:
        self._opened = opened
        self._free: queue.LifoQueue[Store | None] = queue.LifoQueue()
        for _ in range(most):
            self._free.put(None)

    @contextmanager
    def lent(self) -> Iterator[Store]:
        """A store for the time of the block."""
        found = self._free.get()
        try:
            store = found = found or self._opened()
            yield store
        finally:
            self._free.put(found)

    def close(self) -> None:
        """Close the stores that are not lent."""
        while True:
            try:
                store = self._free.get_nowait()
            except queue.Empty:
                return
            if store is not None:
                store.close()
