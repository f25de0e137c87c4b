"""What places for files promise, and two of them: a folder, and rows of a database that other machines reach.

Files are named by the SHA-256 of their content.
"""

import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Connection, delete, func, insert, select

from tuneloom.store.database.addresses import told_as_store_errors
from tuneloom.store.database.connections import Database
from tuneloom.store.database.tables import BLOBS

PIECE = 1 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")

Noted = Callable[[str, Connection | None], None]
"""Notes who needs a file before it is in its place, so that nobody removes it as one that nobody needs.

With a connection, that is part of its transaction; otherwise it is done when this returns.
"""


class FilePlace(Protocol):
    """Keeps files; all of one or nothing of it is there."""

    def put(self, pieces: Iterable[bytes], noted: Noted) -> str:
        """Keep a file; returns its digest, after it was noted under that."""

    def has(self, digest: str) -> bool:
        """Whether a file is there."""

    def read(self, digest: str) -> Iterator[bytes]:
        """A file that is there, piece by piece."""

    def remove(self, digests: Collection[str], connection: Connection) -> None:
        """Remove files within a transaction; those that are not there don't matter."""

    def digests(self, older_than_s: float) -> Iterator[tuple[str, int]]:
        """Names and sizes of complete files that were not touched for so long."""


def is_digest(text: str) -> bool:
    """Whether a file can be named so; nothing else ever becomes part of a path."""
    return _DIGEST.match(text) is not None


def digest_of(path: Path) -> str:
    """The name under which a file's content is kept; raises OSError if it can't be read."""
    found = hashlib.sha256()
    for piece in pieces_of(path):
        found.update(piece)
    return found.hexdigest()


def pieces_of(path: Path) -> Iterator[bytes]:
    """A file, piece by piece; raises OSError if it can't be read."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


@dataclass(frozen=True, slots=True)
class FolderFiles:
    """Lies beside a database that is a file."""

    folder: Path
    place: str

    def put(self, pieces: Iterable[bytes], noted: Noted) -> str:
        digest = hashlib.sha256()
        with told_as_store_errors(self.place):
            self.folder.mkdir(parents=True, exist_ok=True)
            growing = self.folder / f".growing-{secrets.token_hex(8)}"
            try:
                with growing.open("wb") as file:
                    for piece in pieces:
                        digest.update(piece)
                        file.write(piece)
                    file.flush()
                    os.fsync(file.fileno())
                noted(digest.hexdigest(), None)
                target = self._file(digest.hexdigest())
                target.parent.mkdir(exist_ok=True)
                growing.replace(target)
            finally:
                growing.unlink(missing_ok=True)
        return digest.hexdigest()

    def has(self, digest: str) -> bool:
        return is_digest(digest) and self._file(digest).is_file()

    def read(self, digest: str) -> Iterator[bytes]:
        return pieces_of(self._file(digest))

    def remove(self, digests: Collection[str], connection: Connection) -> None:
        for digest in digests:
            self._file(digest).unlink(missing_ok=True)

    def digests(self, older_than_s: float) -> Iterator[tuple[str, int]]:
        for path in self.folder.glob("??/*"):
            found = path.stat()
            if is_digest(path.name) and time.time() - found.st_mtime > older_than_s:
                yield path.name, found.st_size

    def _file(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest


@dataclass(frozen=True, slots=True)
class RowFiles:
    """Pieces of one size; nobody sees half a file, since it is written in one transaction."""

    database: Database

    def put(self, pieces: Iterable[bytes], noted: Noted) -> str:
        digest, growing = hashlib.sha256(), f"growing-{secrets.token_hex(8)}"
        with self.database.writing() as connection:
            for number, piece in enumerate(_even(pieces)):
                digest.update(piece)
                row = {"digest": growing, "number": number, "content": piece}
                connection.execute(insert(BLOBS), row)
            name = digest.hexdigest()
            noted(name, connection)
            known = connection.execute(select(BLOBS.c.number).where(BLOBS.c.digest == name).limit(1)).first()
            grown = BLOBS.c.digest == growing
            change: Any = delete(BLOBS) if known else BLOBS.update().values(digest=name)
            connection.execute(change.where(grown))
        return name

    def has(self, digest: str) -> bool:
        query = select(BLOBS.c.number).where(BLOBS.c.digest == digest).limit(1)
        with self.database.reading() as connection:
            return connection.execute(query).first() is not None

    def read(self, digest: str) -> Iterator[bytes]:
        number = 0
        while True:
            query = select(BLOBS.c.content).where(BLOBS.c.digest == digest, BLOBS.c.number == number)
            with self.database.reading() as connection:
                piece = connection.execute(query).scalar()
            if piece is None:
                return
            yield bytes(piece)
            number += 1

    def remove(self, digests: Collection[str], connection: Connection) -> None:
        connection.execute(delete(BLOBS).where(BLOBS.c.digest.in_(digests)))

    def digests(self, older_than_s: float) -> Iterator[tuple[str, int]]:
        """All of them: rows have no age, and what is written is seen with its owner or not at all."""
        size = func.sum(func.length(BLOBS.c.content))
        with self.database.reading() as connection:
            rows = connection.execute(select(BLOBS.c.digest, size).group_by(BLOBS.c.digest)).all()
        yield from ((row[0], int(row[1] or 0)) for row in rows)


def _even(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces of one size; an empty file is one empty piece."""
    kept, any_yet = bytearray(), False
    for piece in pieces:
        kept += piece
        while len(kept) >= PIECE:
            yield bytes(kept[:PIECE])
            any_yet = True
            del kept[:PIECE]
    if kept or not any_yet:
        yield bytes(kept)
