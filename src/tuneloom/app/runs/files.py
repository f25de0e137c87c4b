"""The files of jobs, kept by digest with their run, so that it can be carried out on any machine."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from tuneloom.app.kinds.finding import kind_named
from tuneloom.engine.calls import ReadFiles
from tuneloom.model import JobSpec
from tuneloom.store import Store, default_place, digest_of, owner_of, pieces_of

_ELSEWHERE = ".samples"


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
    return ReadFiles(folder=str(_folder(spec)), digests=spec.files) if spec.files else None


def localised(store: Store, spec: JobSpec) -> JobSpec:
    """The job with its model and samples where this machine finds them: in their places, or fetched.

    Files that were changed or moved since they were submitted are used as they were.
    """
    folder = _folder(spec)
    if all(_is(folder / name, digest) for name, digest in spec.files.items()):
        return spec
    cache = default_place().parent / "models" / _named(spec.files)
    for name, digest in spec.files.items():
        if not _is(cache / name, digest):
            _fetch(store, digest, cache / name)
    model = Path(spec.model).name
    found = replace(spec, model=str(cache / model)) if model in spec.files else spec
    return replace(found, samples=str(cache / _samples_name(spec, folder))) if spec.samples else found


def _kept(store: Store, spec: JobSpec, owner: str) -> JobSpec:
    """A job whose files don't all lie beside its model is left as it is: only this machine can run it."""
    folder, paths = Path(spec.model).parent, kind_named(spec.tuner).files(spec)
    if not all(path.is_relative_to(folder) and ".." not in path.parts for path in paths):
        return spec
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    if spec.samples:
        samples = Path(spec.samples)
        names[_samples_name(spec, folder if names else samples.parent)] = samples
    return replace(spec, files={name: store.put_blob(pieces_of(path), owner) for name, path in names.items()})


def _folder(spec: JobSpec) -> Path:
    """Where the files of a job lie: beside its model, or beside its samples if the model is not a file."""
    model = Path(spec.model)
    return Path(spec.samples).parent if spec.samples and model.name not in spec.files else model.parent


def _samples_name(spec: JobSpec, folder: Path) -> str:
    """What the samples of a job are called among its files; they may come from another folder."""
    samples = Path(spec.samples or "")
    if samples.is_relative_to(folder) and ".." not in samples.parts:
        return samples.relative_to(folder).as_posix()
    return f"{_ELSEWHERE}/{samples.name}"


def _named(files: Mapping[str, str]) -> str:
    """A name for a set of files: the same files lie in one place, others never in it."""
    return sha256(repr(sorted(files.items())).encode()).hexdigest()[:16]


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
