"""Where a store lies, and how it is opened."""

import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from tuneloom.errors import StoreError
from tuneloom.store.api import Store
from tuneloom.store.bank import BankQueries
from tuneloom.store.blobs import BlobQueries
from tuneloom.store.database import Database
from tuneloom.store.faults import told_as_store_errors
from tuneloom.store.jobs import JobQueries
from tuneloom.store.logs import LogQueries
from tuneloom.store.migrations import LATEST, refuse_newer, upgrade, version_of
from tuneloom.store.service.audit import AuditQueries
from tuneloom.store.service.models import ModelQueries
from tuneloom.store.service.retention import RetentionQueries
from tuneloom.store.service.sessions import SessionQueries
from tuneloom.store.service.shares import ShareQueries
from tuneloom.store.service.submissions import SubmissionQueries
from tuneloom.store.service.tenants import TenantQueries
from tuneloom.store.service.watching import WatchQueries
from tuneloom.store.trials import TrialQueries
from tuneloom.store.waiting import WaitingQueries
from tuneloom.store.wishes import WishQueries

FILES = "TUNELOOM_FILES"
"""The variable that says where files lie."""

PATIENCE_S = 30.0
"""How long a transaction waits for other processes before it gives up."""


class SqlStore(
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
    """The store for SQLite and PostgreSQL alike."""

    @property
    def place(self) -> str:
        return self._database.place

    def close(self) -> None:
        self._database.close()


def default_place() -> Path:
    """`store.db` in $TUNELOOM_HOME, or in `.tuneloom` in the user's home."""
    home = os.environ.get("TUNELOOM_HOME")
    return (Path(home) if home else Path.home() / ".tuneloom") / "store.db"


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
    url = _url(place)
    files = files or os.environ.get(FILES) or None
    database = Database(url, _shown(url), patience_s=patience_s, files=files)
    try:
        _bring_up_to_date(database)
    except BaseException:
        database.close()
        raise
    return SqlStore(database, clock)


def open_existing(place: str | Path | None = None, *, files: str | None = None) -> Store:
    """Open a store to read what it has or to change it: one that is named must be there."""
    if place is not None and "://" not in str(place) and not Path(place).expanduser().exists():
        raise StoreError(f"there is no store at {place}; check --store (`tuneloom tune --store` creates one)")
    return open_store(place, files=files)


def postgres_address(place: str | Path | None) -> str | None:
    """The address of a PostgreSQL store as its own driver takes it; None for any other store."""
    url = _url(place)
    if url.get_backend_name() != "postgresql":
        return None
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def _bring_up_to_date(database: Database) -> None:
    with database.reading() as connection:
        version = version_of(connection, database.place)
    refuse_newer(version, database.place)
    if version < LATEST:
        with database.writing() as connection:
            upgrade(connection, database.place)


def _url(place: str | Path | None) -> URL:
    if place is None or isinstance(place, Path) or "://" not in place:
        return _file_url(Path(place) if place else default_place())
    try:
        url = make_url(place)
    except ArgumentError as error:
        raise StoreError(
            f"{place!r} is not the address of a database, e.g. postgresql://user@host/name"
        ) from error
    match url.get_backend_name():
        case "sqlite":
            return url
        case "postgresql" | "postgres":
            return _postgres_url(url)
        case other:
            raise StoreError(f"no store on {other!r}; known: a path, sqlite:///…, postgresql://…")


def _shown(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


def _file_url(path: Path) -> URL:
    path = path.expanduser().absolute()
    with told_as_store_errors(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise StoreError(f"store {path}: it is a folder, name a file in it")
    return URL.create("sqlite", database=str(path))


def _postgres_url(url: URL) -> URL:
    if find_spec("psycopg") is None:
        raise StoreError("a PostgreSQL store needs psycopg: pip install 'tuneloom[postgres]'")
    return url.set(drivername="postgresql+psycopg")
