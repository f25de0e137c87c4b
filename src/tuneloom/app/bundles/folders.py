"""Where a bundle grows until it is complete: all of one or nothing."""

import os
import shutil
import tempfile
from pathlib import Path

from tuneloom.errors import OutputError


def require_free(folder: Path) -> None:
    """Raise OutputError unless a bundle can be written there."""
    if folder.is_dir() and any(folder.iterdir()):
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


def discard(folder: Path) -> None:
    """Remove what was not finished."""
    shutil.rmtree(unfinished(folder), ignore_errors=True)
