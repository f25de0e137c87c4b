"""The files of jobs, kept by digest with their run, so that it can be carried out on any machine."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tuneloom.app.kinds.finding import kind_named
from tuneloom.engine.calls import ReadFiles
from tuneloom.model import JobSpec
from tuneloom.store import Store, default_place, digest_of, owner_of
from tuneloom.store.files.base import PIECE


@contextmanager
def kept_files(store: Store, specs: Sequence[JobSpec]) -> Iterator[list[JobSpec]]:
    """The jobs with the digests of their files, which are kept at least until the block ends."""
    owner = f"submission:{secrets.token_hex(8)}"
    try:
        yield [_kept(store, spec, owner) for spec in specs]
    finally:
        store.drop_blobs(owner)


def own_files(store: Store, run: str, specs: Sequence[JobSpec]) -> None:
    """Keep the files of jobs for as long as their run may go on."""
    for spec in specs:
        for digest in spec.files.values():
            store.use_blob(digest, owner_of(run))


def files_of(spec: JobSpec) -> ReadFiles | None:
    """The files of a job that is on this machine, for engines that have others."""
    return ReadFiles(folder=str(Path(spec.model).parent), digests=spec.files) if spec.files else None


def localised(store: Store, spec: JobSpec) -> JobSpec:
    """The job with its model where this machine finds it: in its place, or fetched from the store.

    A model that was changed or moved since it was submitted is used as it was.
    """
    if not spec.files:
        return spec
    folder, model = Path(spec.model).parent, Path(spec.model).name
    if all(_is(folder / name, digest) for name, digest in spec.files.items()):
        return spec
    cache = default_place().parent / "models" / spec.files[model][:16]
    for name, digest in spec.files.items():
        if not _is(cache / name, digest):
            _fetch(store, digest, cache / name)
    return replace(spec, model=str(cache / model))


def _kept(store: Store, spec: JobSpec, owner: str) -> JobSpec:
    """A job whose files don't all lie beside its model is left as it is: only this machine can run it."""
    folder, paths = Path(spec.model).parent, kind_named(spec.tuner).files(spec)
    if not all(path.is_relative_to(folder) and ".." not in path.parts for path in paths):
        return spec
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    return replace(spec, files={name: store.put_blob(_pieces(path), owner) for name, path in names.items()})


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _is(path: Path, digest: str) -> bool:
    try:
        return digest_of(path) == digest
    except OSError:
        return False


def _fetch(store: Store, digest: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    growing = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with growing.open("wb") as file:
            for piece in store.blob(digest):
                file.write(piece)
        growing.replace(path)
    finally:
        growing.unlink(missing_ok=True)
