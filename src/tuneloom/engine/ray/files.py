"""Files of calls on a machine that is not the run's: read by digest, written into a folder of their own."""

import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any

from tuneloom.engine.calls import Call, ReadFiles
from tuneloom.engine.ray.blobs import MOST_BYTES, Blobs

_FIELDS = ("source", "samples")
"""Fields of arguments that hold the path of a file."""


class NoRoom(OSError):  # noqa: N818 - the name is the message
    """The disk of a machine has no room for a file that a call reads."""


class FileCache:
    """Keeps files by digest in a folder; they stay there, so that each travels to a machine once.

    Calls see them under their own names, in a folder for each set of files. What a call reads is not
    removed before it has ended, nor while its other files are on their way: a model may be larger than
    all that stays here otherwise.
    """

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self._blobs = Blobs(folder / "files", most_bytes)
        self._sets = folder / "sets"
        self._writing: dict[str, Path] = {}
        self._reading: dict[str, list[int]] = {}
        self._expected: dict[str, list[int]] = {}
        self._unkept: dict[str, str] = {}

    @property
    def digests(self) -> frozenset[str]:
        """What is here already."""
        return self._blobs.digests

    def keep(self, digest: str, data: bytes | None, needed: frozenset[str] = frozenset()) -> frozenset[str]:
        """Take a file in for the next call, which needs all of `needed`; the answer is what is not here then.

        A file that can't be written is not here either: the call that reads it is told why. Raises
        ValueError for a wrong digest.
        """
        self._expect(needed)
        try:
            gone = self._blobs.keep(digest, data)
        except OSError as error:
            size, why = f"{len(data or b'') / (1 << 30):.1f} GiB", error.strerror or error
            self._unkept[digest] = (
                f"can't keep a file of {size} in {self._blobs.folder}: {why}; make room there"
            )
            return frozenset({digest})
        self._unkept.pop(digest, None)
        self._expect({digest} & needed)
        return gone

    def located(self, call: Call, id: str) -> Call:
        """The call with paths of this machine: its files are linked, its folder is a new one.

        Raises FileNotFoundError for a file that is not here any more, and NoRoom for one that could not
        be kept.
        """
        paths: dict[str, str] = {}
        if call.reads is not None:
            self._reading[id] = self._held(call.reads)
            paths |= self._linked(call.reads)
        if call.writes is not None:
            self._writing[id] = Path(tempfile.mkdtemp(prefix="tuneloom-"))
            paths[call.writes] = str(self._writing[id])
        return with_paths(call, paths) if paths else call

    def collected(self, id: str) -> Mapping[str, bytes] | None:
        """A call ended: what it wrote into its folder, which is gone then; None if it writes nothing."""
        folder = self._writing.get(id)
        if folder is None:
            self.forget(id)
            return None
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        written = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
        self.forget(id)
        return written

    def forget(self, id: str) -> None:
        """A call ended, and nobody wants what it wrote."""
        self._blobs.let_go(self._reading.pop(id, ()))
        folder = self._writing.pop(id, None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def expect_nothing(self) -> None:
        """The call for which files came has begun, or will not."""
        for held in self._expected.values():
            self._blobs.let_go(held)
        self._expected.clear()

    def _expect(self, digests: Iterable[str]) -> None:
        """Hold what is here of the files that the next call needs."""
        for digest in set(digests) - self._expected.keys():
            with suppress(FileNotFoundError):
                self._expected[digest] = self._blobs.hold([digest])

    def _held(self, reads: ReadFiles) -> list[int]:
        try:
            return self._blobs.hold(reads.digests.values())
        except FileNotFoundError:
            reasons = [self._unkept.pop(digest, "") for digest in reads.digests.values()]
            for reason in filter(None, reasons):
                raise NoRoom(reason) from None
            raise
        finally:
            self.expect_nothing()

    def _linked(self, reads: ReadFiles) -> dict[str, str]:
        named = repr(sorted(reads.digests.items())).encode()
        folder = self._sets / hashlib.sha256(named).hexdigest()[:16]
        paths = {}
        for name, digest in reads.digests.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if not place.exists():
                place.unlink(missing_ok=True)
                place.symlink_to(self._blobs.path(digest))
            paths[str(Path(reads.folder) / name)] = str(place)
        return paths


def mentioned(call: Call) -> ReadFiles | None:
    """The files that a call reads, if one of its arguments is the path of one."""
    reads = call.reads
    if reads is None:
        return None
    paths = {str(Path(reads.folder) / name) for name in reads.digests}
    return reads if any(paths.intersection(_paths_in(a).values()) for a in call.arguments) else None


def with_paths(call: Call, paths: Mapping[str, str]) -> Call:
    """The call with other paths among its arguments."""
    return replace(call, arguments=tuple(_with_path(argument, paths) for argument in call.arguments))


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Write what a call wrote elsewhere into its folder here; raises OSError."""
    for name, data in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def _paths_in(argument: Any) -> dict[str, str]:
    """The paths in an argument by the field that holds each; the argument itself has no field's name."""
    if isinstance(argument, str):
        return {"": argument}
    held = {name: getattr(argument, name, None) for name in _FIELDS}
    return {name: path for name, path in held.items() if isinstance(path, str)}


def _with_path(argument: Any, paths: Mapping[str, str]) -> Any:
    changed = {name: paths[path] for name, path in _paths_in(argument).items() if path in paths}
    if changed and is_dataclass(argument) and not isinstance(argument, type):
        return replace(argument, **changed)
    return changed.get("", argument)
