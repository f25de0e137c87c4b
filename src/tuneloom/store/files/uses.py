"""Who needs which files; nobody looks for files without an owner while one gets an owner."""

from sqlalchemy import Connection, text

from tuneloom.store.database.queries import insert_once
from tuneloom.store.database.tables.runs import BLOB_USES

_LOCK = 7_410_923_552


def add_use(connection: Connection, digest: str, owner: str) -> None:
    """Make an owner of a file inside the caller's transaction, alone until it ends.

    Who removes files does so alone, too: a file is either there for its new owner, or gone before.
    """
    alone(connection)
    insert_once(connection, BLOB_USES, {"digest": digest, "owner": owner})


def alone(connection: Connection) -> None:
    """Let nobody else change who needs which files until we commit; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
