"""What a database's error means for the user: the file, and the remedy."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

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
    return f"{first_line} ({name})" if name else first_line
