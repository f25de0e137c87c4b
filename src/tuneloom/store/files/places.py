"""What a place for files promises. Files are named by the SHA-256 of their content."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection

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
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            found.update(piece)
    return found.hexdigest()
