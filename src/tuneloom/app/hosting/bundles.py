"""Bundles that go into the store, so that they can be had whoever made them.

A bundle there is one file; the same folder gives the same bytes, so its digest names it.
"""

import gzip
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from tuneloom.errors import StoreError
from tuneloom.model import JobSpec
from tuneloom.store import Store, default_place

KEPT = "store:"
"""As the folder of a bundle: it goes into the store."""

_PIECE = 1 << 20
_FOLDER = "bundles"


def with_folder(spec: JobSpec, run: str) -> JobSpec:
    """The job with a folder of this machine to make its bundle in, if that goes into the store."""
    if spec.out != KEPT:
        return spec
    shutil.rmtree(_home() / run, ignore_errors=True)  # of an executor that died while it packed the bundle
    return replace(spec, out=str(_home() / run))


def goes_to_store(spec: JobSpec, run: str) -> bool:
    """Whether the bundle of a job that has ended belongs into the store."""
    return spec.out is not None and Path(spec.out) == _home() / run and Path(spec.out).is_dir()


def put_bundle(opened: Callable[[], Store], run: str, folder: Path) -> tuple[str, int]:
    """Pack a folder into one file of a store, which is opened for that; returns its digest and its size.

    Raises StoreError if that can't be done, for lack of room too.
    """
    size = 0

    def counted() -> Iterator[bytes]:
        nonlocal size
        for piece in packed(folder):
            size += len(piece)
            yield piece

    try:
        with opened() as store:
            return store.put_blob(counted(), bundle_owner(run)), size
    except OSError as error:
        raise StoreError(f"the bundle of {run} can't be packed: {error.strerror or error}") from error


def bundle_owner(run: str) -> str:
    """Who needs the file of a bundle."""
    return f"bundle:{run}"


def _home() -> Path:
    return default_place().parent / _FOLDER


def packed(folder: Path) -> Iterator[bytes]:
    """The folder as a `.tar.gz`, piece by piece; owners, times and order of files don't show."""
    with tempfile.TemporaryFile() as file:
        with (
            gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1, mtime=0, filename="") as zipped,
            tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for path in sorted(folder.rglob("*")):
                archive.add(path, path.relative_to(folder).as_posix(), recursive=False, filter=_plain)
        file.seek(0)
        while piece := file.read(_PIECE):
            yield piece


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if not (member.isfile() or member.isdir()):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return member
