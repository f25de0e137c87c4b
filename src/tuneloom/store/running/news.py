"""Being told at once that there is something to do, where the database can tell: PostgreSQL.

News say nothing but that it is worth looking. Who misses some finds out at the next look anyway.
"""

import threading
from typing import Any

from tuneloom.store.database.addresses import postgres_address
from tuneloom.store.database.queries import CHANNEL

_AGAIN_S = 5.0


class News:
    """Listens in a thread of its own; a connection that breaks is made again."""

    def __init__(self, place: str | None) -> None:
        self._address = postgres_address(place)
        self._news = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="news", daemon=True)

    def __enter__(self) -> "News":
        if self._address is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def came(self) -> bool:
        """Whether there were news since the last question."""
        if not self._news.is_set():
            return False
        self._news.clear()
        return True

    def _listen(self) -> None:
        import psycopg

        while not self._ending.is_set():
            try:
                with psycopg.connect(self._address or "", autocommit=True, connect_timeout=10) as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    self._news.set()  # something may have come while nobody listened
                    self._hear(connection)
            except psycopg.Error:
                self._ending.wait(_AGAIN_S)

    def _hear(self, connection: Any) -> None:
        while not self._ending.is_set():
            for _ in connection.notifies(timeout=1.0, stop_after=1):
                self._news.set()
