"""Where a store lies, and what an error of its database means for the user."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from tuneloom.errors import StoreError

REMEDIES = {
    "SQLITE_BUSY": "another process keeps it locked: end that process, or try again later",
    "SQLITE_LOCKED": "another process keeps it locked: end that process, or try again later",
    "SQLITE_FULL": "the disk is full: free some space, or set TUNELOOM_HOME to a folder on another disk",
    "SQLITE_IOERR": "the disk is full or broken: free some space, or set TUNELOOM_HOME to another disk",
    "SQLITE_READONLY": "it can't be written: correct its permissions, or set TUNELOOM_HOME",
    "SQLITE_CANTOPEN": "it can't be opened: correct the folder's permissions, or set TUNELOOM_HOME",
    "SQLITE_NOTADB": "it is not a SQLite database: move it away, or set TUNELOOM_HOME to another folder",
    "SQLITE_CONSTRAINT_FOREIGNKEY": "something was added to a run or job that it does not have",
    "SQLITE_CORRUPT": "it is damaged: restore a copy, or move it away to start with an empty store",
}


@contextmanager
def told_as_store_errors(place: str) -> Iterator[None]:
    """Turn what the database layer raises into StoreError."""
    try:
        yield
    except SQLAlchemyError as error:
        raise StoreError(f"store {place}: {_reason(error)}") from error
    except OSError as error:
        raise StoreError(
            f"store {place}: {error.strerror or error}; set TUNELOOM_HOME to a folder of yours"
        ) from error


def _reason(error: SQLAlchemyError) -> str:
    cause = error.orig if isinstance(error, DBAPIError) else None
    name = str(getattr(cause, "sqlite_errorname", ""))
    for prefix, remedy in REMEDIES.items():
        if name.startswith(prefix):
            return remedy
    first_line = str(cause or error).strip().splitlines()[0]
    if first_line.startswith("connection failed"):
        return f"{first_line}; check the address, and that the server runs"
    return f"{first_line} ({name})" if name else first_line


def default_place() -> Path:
    """`store.db` in $TUNELOOM_HOME, or in `.tuneloom` in the user's home."""
    home = os.environ.get("TUNELOOM_HOME")
    return (Path(home) if home else Path.home() / ".tuneloom") / "store.db"


def postgres_address(place: str | Path | None) -> str | None:
    """The address of a PostgreSQL store as its own driver takes it; None for any other store."""
    url = url_of(place)
    if url.get_backend_name() != "postgresql":
        return None
    return url.set(drivername="postgresql").render_as_string(hide_password=False)


def url_of(place: str | Path | None) -> URL:
    """The address of a store; raises StoreError for what is neither a path nor a known address."""
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


def shown(url: URL) -> str:
    """An address for people, without a password."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    return url.set(drivername="postgresql").render_as_string(hide_password=True)


def _file_url(path: Path) -> URL:
    path = path.expanduser().absolute()
    with told_as_store_errors(str(path)):
        if path.is_dir():
            raise StoreError(f"store {path}: it is a folder, name a file in it")
    return URL.create("sqlite", database=str(path))


def _postgres_url(url: URL) -> URL:
    if find_spec("psycopg") is None:
        raise StoreError("a PostgreSQL store needs psycopg: pip install 'tuneloom[postgres]'")
    return url.set(drivername="postgresql+psycopg")
