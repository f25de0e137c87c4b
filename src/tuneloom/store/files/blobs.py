"""Who needs which files; nobody looks for files without an owner while one gets an owner."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, delete, select, text

from tuneloom.errors import StoreError
from tuneloom.store.database.queries import Queries, insert_once
from tuneloom.store.database.tables import BLOB_USES
from tuneloom.store.files.places import FilePlace, FolderFiles, RowFiles
from tuneloom.store.files.remote import RemoteFiles

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


_YOUNG_S = 86_400.0  # a file that nobody owns may be on its way to an owner


class BlobQueries(Queries):
    """Files by digest (SHA-256 in hexadecimal), each kept for as long as it has an owner."""

    def put_blob(self, pieces: Iterable[bytes], owner: str) -> str:
        """Keep a file for an owner; returns its digest. The same content is kept once."""

        def noted(digest: str, connection: Connection | None) -> None:
            if connection is not None:
                add_use(connection, digest, owner)
                return
            with self._database.writing() as own:
                add_use(own, digest, owner)

        return self._files.put(pieces, noted)

    def has_blob(self, digest: str) -> bool:
        """Whether a file is there."""
        return self._files.has(digest)

    def blob(self, digest: str) -> Iterator[bytes]:
        """A file's content in pieces; raises StoreError if it is not there."""
        self._require_file(digest)
        return self._files.read(digest)

    def use_blob(self, digest: str, owner: str) -> None:
        """Make another owner of a file; raises StoreError if it is not there."""
        with self._database.writing() as connection:
            add_use(connection, digest, owner)
            self._require_file(digest)

    def drop_blobs(self, owner: str) -> int:
        """Let go of all files of an owner; returns how many had no other and were removed."""
        with self._database.writing() as connection:
            alone(connection)
            mine = set(connection.execute(_used_by(owner)).scalars())
            connection.execute(delete(BLOB_USES).where(BLOB_USES.c.owner == owner))
            still = select(BLOB_USES.c.digest).where(BLOB_USES.c.digest.in_(mine))
            unused = mine - set(connection.execute(still).scalars())
            if unused:
                self._files.remove(unused, connection)
        return len(unused)

    def unused_blobs(self) -> list[tuple[str, int]]:
        """Digests and sizes of files that nobody owns and that are not on their way to an owner."""
        with self._database.reading() as connection:
            used = set(connection.execute(select(BLOB_USES.c.digest).distinct()).scalars())
        return [(digest, size) for digest, size in self._files.digests(_YOUNG_S) if digest not in used]

    def remove_unused_blobs(self, digests: Iterable[str]) -> None:
        """Remove those of these files that still nobody owns."""
        with self._database.writing() as connection:
            alone(connection)
            wanted = set(digests)
            still = select(BLOB_USES.c.digest).where(BLOB_USES.c.digest.in_(wanted))
            self._files.remove(wanted - set(connection.execute(still).scalars()), connection)

    def _require_file(self, digest: str) -> None:
        if not self._files.has(digest):
            raise StoreError(f"store {self._database.place} has no file with digest {digest[:12]}…")

    @cached_property
    def _files(self) -> FilePlace:
        database = self._database
        if database.files is not None:
            return RemoteFiles(database.files)
        if database.file is not None:
            folder = database.file.with_name(f"{database.file.name}.files")
            return FolderFiles(folder, database.place)
        return RowFiles(database)


def _used_by(owner: str) -> Any:
    return select(BLOB_USES.c.digest).where(BLOB_USES.c.owner == owner)
