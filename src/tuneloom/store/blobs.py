"""Files by digest: what jobs need, so that any machine that reaches the store can get it.

Beside a SQLite file they lie in a folder; in a database that other machines reach, they are
rows. A blob belongs to its owners and goes with the last of them.
"""

import hashlib
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from tuneloom.errors import StoreError
from tuneloom.store.faults import told_as_store_errors
from tuneloom.store.queries import Queries, insert_once
from tuneloom.store.tables.runs import BLOB_USES, BLOBS

PIECE = 1 << 20
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def digest_of(path: Path) -> str:
    """The name under which a file's content is kept; raises OSError if it can't be read."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            found.update(piece)
    return found.hexdigest()


class BlobQueries(Queries):
    """The part of a store that `BlobStore` describes."""

    def put_blob(self, pieces: Iterable[bytes], owner: str) -> str:
        folder = self._blob_folder()
        digest = _to_folder(folder, pieces, self._database.place) if folder else self._to_rows(pieces)
        with self._database.writing() as connection:
            insert_once(connection, BLOB_USES, {"digest": digest, "owner": owner})
        return digest

    def has_blob(self, digest: str) -> bool:
        folder = self._blob_folder()
        if folder is not None:
            return bool(_DIGEST.match(digest)) and _file(folder, digest).is_file()
        query = select(BLOBS.c.number).where(BLOBS.c.digest == digest).limit(1)
        with self._database.reading() as connection:
            return connection.execute(query).first() is not None

    def blob(self, digest: str) -> Iterator[bytes]:
        if not self.has_blob(digest):
            raise StoreError(f"store {self._database.place} has no file with digest {digest[:12]}…")
        folder = self._blob_folder()
        return _from_folder(folder, digest) if folder else self._from_rows(digest)

    def use_blob(self, digest: str, owner: str) -> None:
        with self._database.writing() as connection:
            insert_once(connection, BLOB_USES, {"digest": digest, "owner": owner})

    def drop_blobs(self, owner: str) -> int:
        with self._database.writing() as connection:
            mine = set(connection.execute(_used_by(owner)).scalars())
            connection.execute(delete(BLOB_USES).where(BLOB_USES.c.owner == owner))
            still = select(BLOB_USES.c.digest).where(BLOB_USES.c.digest.in_(mine))
            unused = mine - set(connection.execute(still).scalars())
            self._remove(connection, unused)
        return len(unused)

    def _remove(self, connection: Connection, digests: set[str]) -> None:
        folder = self._blob_folder()
        if folder is None:
            connection.execute(delete(BLOBS).where(BLOBS.c.digest.in_(digests)))
            return
        for digest in digests:
            _file(folder, digest).unlink(missing_ok=True)

    def _blob_folder(self) -> Path | None:
        """Beside a database that is a file of this machine; None for others."""
        file = self._database.file
        return None if file is None else file.with_name(f"{file.name}.files")

    def _to_rows(self, pieces: Iterable[bytes]) -> str:
        """Write under a name of our own, then under the digest: nobody sees half a file."""
        digest, growing = hashlib.sha256(), f"growing-{secrets.token_hex(8)}"
        with self._database.writing() as connection:
            for number, piece in enumerate(_even(pieces)):
                digest.update(piece)
                row = {"digest": growing, "number": number, "content": piece}
                connection.execute(insert(BLOBS), row)
            name = digest.hexdigest()
            known = connection.execute(select(BLOBS.c.number).where(BLOBS.c.digest == name).limit(1)).first()
            grown = BLOBS.c.digest == growing
            change: Any = delete(BLOBS) if known else BLOBS.update().values(digest=name)
            connection.execute(change.where(grown))
        return name

    def _from_rows(self, digest: str) -> Iterator[bytes]:
        number = 0
        while True:
            query = select(BLOBS.c.content).where(BLOBS.c.digest == digest, BLOBS.c.number == number)
            with self._database.reading() as connection:
                piece = connection.execute(query).scalar()
            if piece is None:
                return
            yield bytes(piece)
            number += 1


def _used_by(owner: str) -> Any:
    return select(BLOB_USES.c.digest).where(BLOB_USES.c.owner == owner)


def _file(folder: Path, digest: str) -> Path:
    return folder / digest[:2] / digest


def _to_folder(folder: Path, pieces: Iterable[bytes], place: str) -> str:
    digest = hashlib.sha256()
    with told_as_store_errors(place):
        folder.mkdir(parents=True, exist_ok=True)
        growing = folder / f".growing-{secrets.token_hex(8)}"
        try:
            with growing.open("wb") as file:
                for piece in pieces:
                    digest.update(piece)
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            target = _file(folder, digest.hexdigest())
            target.parent.mkdir(exist_ok=True)
            growing.replace(target)
        finally:
            growing.unlink(missing_ok=True)
    return digest.hexdigest()


def _from_folder(folder: Path, digest: str) -> Iterator[bytes]:
    with _file(folder, digest).open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


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
