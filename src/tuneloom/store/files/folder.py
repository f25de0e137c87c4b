"""Files in a folder of this machine."""

import hashlib
import os
import secrets
import time
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from tuneloom.store.database.faults import told_as_store_errors
from tuneloom.store.files.places import PIECE, Noted, is_digest


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
        with self._file(digest).open("rb") as file:
            while piece := file.read(PIECE):
                yield piece

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
