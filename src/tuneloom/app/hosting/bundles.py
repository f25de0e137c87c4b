"""Bundles that go into the store, so that they can be had whoever made them.

A bundle there is one file; the same folder gives the same bytes, so its digest names it.
"""

import gzip
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

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
    return replace(spec, out=str(_home() / run))


def keep_bundle(store: Store, run: str, spec: JobSpec) -> None:
    """Put the bundle of a job that has ended into the store, if it belongs there; its folder goes."""
    if spec.out is None or Path(spec.out) != _home() / run or not Path(spec.out).is_dir():
        return
    size = 0

    def counted() -> Iterator[bytes]:
        nonlocal size
        for piece in packed(Path(spec.out or "")):
            size += len(piece)
            yield piece

    digest = store.put_blob(counted(), bundle_owner(run))
    store.keep_bundle(run, digest, size)
    shutil.rmtree(spec.out, ignore_errors=True)


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
