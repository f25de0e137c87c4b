"""Where a bundle grows until it is complete, and where what models lowered to is kept."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

from tuneloom.errors import OutputError
from tuneloom.store import default_place
from tuneloom.tuners.tvm.bundles.one_file import SUFFIX, pack


def require_free(folder: Path) -> None:
    """Raise OutputError unless a bundle can be written there, as a folder or as one file (`.tlb`)."""
    if folder.is_dir() and (any(folder.iterdir()) or folder.suffix == SUFFIX):
        raise OutputError(f"{folder} is not empty; choose another folder with --out or empty it")
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; choose a folder with --out")
    parent = folder.absolute().parent
    while not parent.exists():
        parent = parent.parent
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".tuneloom-", dir=parent))
    except OSError as error:
        raise OutputError(
            f"{parent} can't be written to ({error.strerror}); choose another place with --out"
        ) from error


def unfinished(folder: Path) -> Path:
    """Where a bundle grows until it is complete."""
    place = folder.absolute()
    return place.with_name(f".{place.name}.unfinished")


def prepare(folder: Path) -> Path:
    """Make the place where the bundle grows, empty."""
    place = unfinished(folder)
    try:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
    except OSError as error:
        raise OutputError(
            f"can't write {folder}: {error.strerror}; choose another place with --out"
        ) from error
    return place


def show(place: Path, bundle: Path) -> None:
    """Put a complete bundle where it belongs: as a folder, or as one file if its name ends like one."""
    if bundle.suffix == SUFFIX:
        pack(place, bundle)
        shutil.rmtree(place)
        return
    with suppress(FileNotFoundError):
        bundle.rmdir()
    place.rename(bundle)


def discard(folder: Path) -> None:
    """Remove what was not finished."""
    shutil.rmtree(unfinished(folder), ignore_errors=True)


def lowered_folder() -> str:
    """A folder on this machine; runs on any store share it."""
    return str(default_place().parent / "lowered")


def write_whole(path: Path, text: str, remedy: str = "choose another place") -> None:
    """Write a file, all of it or nothing; raises OutputError if it can't be written."""
    place = path.absolute()  # a path such as `.` has no name
    unfinished = place.with_name(f".{place.name}.{os.getpid()}")
    try:
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(place)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise OutputError(f"can't write {path}: {error.strerror or error}; {remedy}") from error
