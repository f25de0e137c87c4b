"""Stores for the threads of a server: each is used by one thread at a time."""

import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tuneloom.store import Store


class StorePool:
    """Lends stores; opens at most `most`, then callers wait for one that comes back."""

    def __init__(self, opened: Callable[[], Store], most: int = 8) -> None:
        self._opened = opened
        self._closed = False
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
            if self._closed:
                self.close()

    def close(self) -> None:
        """Close all stores; those that are lent, when they come back."""
        self._closed = True
        free: list[Store | None] = []
        with suppress(queue.Empty):
            while True:
                free.append(self._free.get_nowait())
        for store in free:
            if store is not None:
                store.close()
            self._free.put(None)
