"""Files in an object store such as S3, reached by fsspec, which the extra `s3` installs."""

import hashlib
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from tuneloom.errors import StoreError
from tuneloom.store.files.places import PIECE, Noted, is_digest


class RemoteFiles:
    """Files under an address such as `s3://bucket/tuneloom`.

    Object stores show an object when it is complete, so a file is uploaded under its final name. It is
    spooled here first: its digest, which is its name, is known only when all of it was read.
    """

    def __init__(self, address: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ModuleNotFoundError as error:
            raise StoreError("files in an object store need fsspec: pip install 'tuneloom[s3]'") from error
        self._address = address
        try:
            self._system, self._root = url_to_fs(address)
        except (ValueError, ImportError) as error:
            raise StoreError(f"files can't be kept at {address}: {error}") from error

    def put(self, pieces: Iterable[bytes], noted: Noted) -> str:
        digest = hashlib.sha256()
        with tempfile.NamedTemporaryFile(prefix="tuneloom-file-") as file:
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
            file.flush()
            name = digest.hexdigest()
            noted(name, None)
            self._asked("put_file", file.name, self._path(name))
        return name

    def has(self, digest: str) -> bool:
        return is_digest(digest) and bool(self._asked("isfile", self._path(digest)))

    def read(self, digest: str) -> Iterator[bytes]:
        with self._asked("open", self._path(digest), "rb") as file:
            while piece := file.read(PIECE):
                yield piece

    def remove(self, digests: Collection[str], connection: Connection) -> None:
        for digest in digests:
            if self.has(digest):
                self._asked("rm_file", self._path(digest))

    def digests(self, older_than_s: float) -> Iterator[tuple[str, int]]:
        for path, found in self._asked("find", self._root, detail=True).items():
            name = path.rpartition("/")[2]
            if is_digest(name) and _age_s(found) > older_than_s:
                yield name, int(found.get("size") or 0)

    def _path(self, digest: str) -> str:
        return f"{self._root}/{digest[:2]}/{digest}"

    def _asked(self, what: str, *arguments: Any, **options: Any) -> Any:
        try:
            return getattr(self._system, what)(*arguments, **options)
        except OSError as error:
            raise StoreError(f"files at {self._address} can't be reached: {error}") from error


def _age_s(found: Any) -> float:
    """How long ago an object was written; one that does not tell is new."""
    for name in ("LastModified", "created", "mtime"):
        when = found.get(name)
        if isinstance(when, datetime):
            return time.time() - when.timestamp()
        if isinstance(when, float | int):
            return time.time() - when
    return 0.0
