"""The store as a whole, and how it is opened."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from tuneloom.errors import StoreError
from tuneloom.store.bank.lookup import BankQueries
from tuneloom.store.bank.trials import TrialQueries
from tuneloom.store.database.addresses import shown, told_as_store_errors, url_of
from tuneloom.store.database.connections import Database
from tuneloom.store.database.migrations import LATEST, refuse_newer, upgrade, version_of
from tuneloom.store.files.blobs import BlobQueries
from tuneloom.store.running.jobs import JobQueries, WaitingQueries
from tuneloom.store.running.logs import LogQueries
from tuneloom.store.running.wishes import WishQueries
from tuneloom.store.tenancy.models import ModelQueries, RetentionQueries
from tuneloom.store.tenancy.shares import ShareQueries
from tuneloom.store.tenancy.submissions import SubmissionQueries
from tuneloom.store.tenancy.tenants import SessionQueries, TenantQueries
from tuneloom.store.tenancy.watching import AuditQueries, WatchQueries

FILES = "TUNELOOM_FILES"
"""The variable that says where files lie."""

PATIENCE_S = 30.0
"""How long a transaction waits for other processes before it gives up."""


class Store(
    SubmissionQueries,
    JobQueries,
    TrialQueries,
    BankQueries,
    LogQueries,
    WishQueries,
    BlobQueries,
    TenantQueries,
    SessionQueries,
    ModelQueries,
    WatchQueries,
    AuditQueries,
    ShareQueries,
    WaitingQueries,
    RetentionQueries,
):
    """Everything Tuneloom keeps, on SQLite and PostgreSQL alike. Get one from `open_store`, and close it.

    A store is used by one thread of one process; other processes may read and write the same store at
    the same time. Every method is one short transaction: when a writing method returns, what it wrote
    survives `kill -9` and a power cut. Times are seconds since the epoch unless a name says otherwise.
    Every method raises StoreError when the database can't be reached, is locked for too long, or the
    disk is full.
    """

    @property
    def place(self) -> str:
        """The file or address of the store, without a password."""
        return self._database.place

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database; the store can't be used afterwards, nor after a `with` block of it."""
        self._database.close()


def open_store(
    place: str | Path | None = None,
    *,
    clock: Callable[[], float] = time.time,
    patience_s: float = PATIENCE_S,
    files: str | None = None,
) -> Store:
    """Open the store at a path, a `postgresql://…` or `sqlite:///…` address, or the default place.

    Its files lie at `files`, such as `s3://bucket/tuneloom`, or where $TUNELOOM_FILES says, or with
    the database; all who use a store have to agree on that.

    Creates it if there is none, and brings an older one up to date. Raises StoreError if
    it can't be opened, is no store, or was written by a newer program.
    """
    url = url_of(place)
    if "://" not in str(place):
        with told_as_store_errors(shown(url)):
            Path(shown(url)).parent.mkdir(parents=True, exist_ok=True)
    files = files or os.environ.get(FILES) or None
    database = Database(url, shown(url), patience_s=patience_s, files=files)
    try:
        _bring_up_to_date(database)
    except BaseException:
        database.close()
        raise
    return Store(database, clock)


def open_existing(place: str | Path | None = None, *, files: str | None = None) -> Store:
    """Open a store to read what it has or to change it: one that is named must be there."""
    if place is not None and "://" not in str(place) and not Path(place).expanduser().exists():
        raise StoreError(f"there is no store at {place}; check --store (`tuneloom tune --store` creates one)")
    return open_store(place, files=files)


def find_store(place: str | Path | None = None) -> tuple[str, bool]:
    """Where a store lies, and whether there is one; nothing is created or brought up to date.

    Raises StoreError if there is one that can't be opened, is no store, or was written by a newer program.
    """
    url = url_of(place)
    if url.get_backend_name() == "sqlite" and not Path(shown(url)).exists():
        return shown(url), False
    database = Database(url, shown(url), patience_s=PATIENCE_S)
    try:
        with database.reading() as connection:
            refuse_newer(version_of(connection, database.place), database.place)
    finally:
        database.close()
    return database.place, True


def _bring_up_to_date(database: Database) -> None:
    with database.reading() as connection:
        version = version_of(connection, database.place)
    refuse_newer(version, database.place)
    if version < LATEST:
        with database.writing() as connection:
            upgrade(connection, database.place)
