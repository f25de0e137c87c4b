"""Files of calls on a machine that is not the run's: read by digest, written into a folder of their own."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

from tuneloom.engine.calls import Call, ReadFiles

_SOURCE = "source"


class FileCache:
    """Keeps files by digest in a folder; they stay there, so that each travels to a machine once.

    Calls see them under their own names, in a folder for each set of files.
    """

    def __init__(self, folder: Path) -> None:
        self._blobs = folder / "files"
        self._sets = folder / "sets"
        self._writing: dict[str, Path] = {}

    @property
    def digests(self) -> frozenset[str]:
        """What is here already."""
        if not self._blobs.is_dir():
            return frozenset()
        return frozenset(path.name for path in self._blobs.iterdir() if "." not in path.name)

    def keep(self, digest: str, data: bytes | None) -> None:
        """Take a file in; raises ValueError if it is not what its digest says."""
        if data is None or hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"a file got lost or changed on its way; its digest is {digest}")
        self._blobs.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._blobs, suffix=".part", delete=False) as growing:
            growing.write(data)
        os.replace(growing.name, self._blobs / digest)

    def located(self, call: Call, id: str) -> Call:
        """The call with paths of this machine: its files are linked, its folder is a new one."""
        paths: dict[str, str] = {}
        if call.reads is not None:
            paths |= self._linked(call.reads)
        if call.writes is not None:
            self._writing[id] = Path(tempfile.mkdtemp(prefix="tuneloom-"))
            paths[call.writes] = str(self._writing[id])
        return with_paths(call, paths) if paths else call

    def collected(self, id: str) -> Mapping[str, bytes] | None:
        """What a call wrote into its folder, which is gone then; None for one that writes nothing."""
        folder = self._writing.get(id)
        if folder is None:
            return None
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        written = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
        self.forget(id)
        return written

    def forget(self, id: str) -> None:
        """A call ends without its folder being asked for."""
        folder = self._writing.pop(id, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _linked(self, reads: ReadFiles) -> dict[str, str]:
        named = repr(sorted(reads.digests.items())).encode()
        folder = self._sets / hashlib.sha256(named).hexdigest()[:16]
        paths = {}
        for name, digest in reads.digests.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                place.unlink(missing_ok=True)
                place.symlink_to(self._blobs / digest)
            paths[str(Path(reads.folder) / name)] = str(place)
        return paths


def mentioned(call: Call) -> ReadFiles | None:
    """The files that a call reads, if one of its arguments is the path of one."""
    reads = call.reads
    if reads is None:
        return None
    paths = {str(Path(reads.folder) / name) for name in reads.digests}
    return reads if any(_path_of(argument) in paths for argument in call.arguments) else None


def with_paths(call: Call, paths: Mapping[str, str]) -> Call:
    """The call with other paths among its arguments."""
    return replace(call, arguments=tuple(_with_path(argument, paths) for argument in call.arguments))


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Write what a call wrote elsewhere into its folder here; raises OSError."""
    for name, data in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def _path_of(argument: Any) -> str | None:
    return argument if isinstance(argument, str) else getattr(argument, _SOURCE, None)


def _with_path(argument: Any, paths: Mapping[str, str]) -> Any:
    path = paths.get(_path_of(argument) or "")
    if path is None:
        return argument
    if is_dataclass(argument) and not isinstance(argument, type):
        return replace(argument, **{_SOURCE: path})
    return path
