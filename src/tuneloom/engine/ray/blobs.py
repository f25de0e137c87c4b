"""Files on a machine by digest: as many as there is room for, the least recently used ones go first."""

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

MOST_BYTES = 16 << 30
"""How much stays on a machine."""


class Blobs:
    """A folder that several agents of one machine may share.

    Whoever needs a file holds a lock on it, which ends with the process at the latest; files that
    somebody holds are never removed.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self.folder = folder
        self._most_bytes = most_bytes

    @property
    def digests(self) -> frozenset[str]:
        """What is here already."""
        return frozenset(path.name for path in self._paths())

    def path(self, digest: str) -> Path:
        return self.folder / digest

    def keep(self, digest: str, data: bytes | None) -> frozenset[str]:
        """Take a file in; the answer is what had to go for it.

        Raises ValueError for a wrong digest, and OSError if there is no room on the disk.
        """
        if data is None or hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"a file got lost or changed on its way; its digest is {digest}")
        self.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".part", delete=False) as growing:
            try:
                growing.write(data)
                growing.flush()
            except OSError:
                os.unlink(growing.name)
                raise
        os.replace(growing.name, self.path(digest))
        return self._make_room(besides=digest)

    def hold(self, digests: Iterable[str]) -> list[int]:
        """Need files from now on, until `let_go`; raises FileNotFoundError if one is not here."""
        held: list[int] = []
        try:
            for digest in digests:
                held.append(os.open(self.path(digest), os.O_RDONLY | os.O_CLOEXEC))
                fcntl.flock(held[-1], fcntl.LOCK_SH)
                os.utime(self.path(digest))  # raises if it was removed before it was locked
        except OSError:
            self.let_go(held)
            raise
        return held

    def let_go(self, held: Iterable[int]) -> None:
        for handle in held:
            os.close(handle)

    def _make_room(self, besides: str) -> frozenset[str]:
        found = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in self._paths())
        size = sum(each for _, each, _ in found)
        gone: set[str] = set()
        for _, own, path in found:
            if size <= self._most_bytes:
                break
            if path.name != besides and _removed(path):
                size -= own
                gone.add(path.name)
        return frozenset(gone)

    def _paths(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return [path for path in self.folder.iterdir() if "." not in path.name]


def _removed(path: Path) -> bool:
    """Remove a file unless somebody holds it."""
    with suppress(OSError), path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
        return True
    return False
