"""Files as rows, in a database that other machines reach."""

import hashlib
import secrets
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select

from tuneloom.store.database.connections import Database
from tuneloom.store.database.tables.runs import BLOBS
from tuneloom.store.files.places import PIECE, Noted


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
