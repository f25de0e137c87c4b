"""One database, SQLite or PostgreSQL, behind the same two kinds of transaction.

SQLite runs in WAL mode, so readers never wait, with `synchronous=FULL`: each commit is
flushed to the disk, which costs milliseconds where a measurement costs a hundred times
that, and with NORMAL the last measurements before a power cut would be gone. Writing
transactions take the write lock when they begin, so that none fails half-way because
another process wrote in between.
"""

import os
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import OperationalError

from tuneloom.errors import StoreError
from tuneloom.store.database.addresses import told_as_store_errors

_AGAIN_S = 0.002
POSTGRES_SETTINGS = "-c synchronous_commit=on -c lock_timeout={ms}"


class Database:
    """Connections to one database; may be used by the process that made it, not by its forks."""

    def __init__(self, url: URL, place: str, *, patience_s: float, files: str | None = None) -> None:
        """`files` is the address of an object store for files, if they don't lie with the database."""
        self.place = place
        self.files = files
        self.address = url
        self._pid = os.getpid()
        self._patience_s = patience_s
        self._engine = self._sqlite(url) if url.get_backend_name() == "sqlite" else self._postgres(url)
        self._writer = self._engine.execution_options(writes=True)

    @property
    def file(self) -> Path | None:
        """The file of a SQLite database on a disk."""
        url = self._engine.url
        on_disk = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
        return Path(str(url.database)) if on_disk else None

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._engine.dialect.name

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One consistent view of the data."""
        with self._used_here(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction that is durable when the block ends and undone if it raises."""
        with self._used_here(), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @contextmanager
    def _used_here(self) -> Iterator[None]:
        if os.getpid() != self._pid:
            raise StoreError(
                f"store {self.place} was opened by process {self._pid}: open it again after a fork"
            )
        with told_as_store_errors(self.place):
            yield

    def _sqlite(self, url: URL) -> Engine:
        engine = create_engine(url, connect_args={"timeout": self._patience_s, "check_same_thread": False})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite(self._patience_s))
        return engine

    def _postgres(self, url: URL) -> Engine:
        settings = POSTGRES_SETTINGS.format(ms=int(self._patience_s * 1000))
        # Databases made under the locale C have no encoding, and would answer in bytes.
        arguments: dict[str, Any] = {"connect_timeout": 10, "options": settings, "client_encoding": "utf8"}
        return create_engine(url, connect_args=arguments, pool_pre_ping=True, pool_size=1)


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}").close()


def _begin_sqlite(patience_s: float) -> Callable[[Connection], None]:
    """Begins transactions; one that writes waits for the lock by asking for it every few milliseconds.

    SQLite itself would sleep up to 100 ms between its tries, and miss most of the short gaps that a
    busy writer leaves.
    """

    def begin(connection: Connection) -> None:
        if not connection.get_execution_options().get("writes", False):
            connection.exec_driver_sql("BEGIN")
            return
        end_s = time.monotonic() + patience_s
        _wait_at_most(connection, 0.0)
        try:
            while not _locked_now(connection, last=time.monotonic() >= end_s):
                time.sleep(_AGAIN_S * (0.5 + random.random()))
        finally:
            _wait_at_most(connection, patience_s)

    return begin


def _locked_now(connection: Connection, *, last: bool) -> bool:
    """Whether we have the write lock now; raises if we should have had it by now."""
    try:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    except OperationalError as error:
        if last or not str(getattr(error.orig, "sqlite_errorname", "")).startswith("SQLITE_BUSY"):
            raise
        return False
    return True


def _wait_at_most(connection: Connection, seconds: float) -> None:
    driver: Any = connection.connection.dbapi_connection
    driver.execute(f"PRAGMA busy_timeout={int(seconds * 1000)}").close()
