"""Processes that get ready side by side and use the GPU in turns."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 150.0
"""How long those that are ready wait for the others."""


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the GPU against other processes with this folder; a process that ends lets it go."""
    with (folder / "gpu.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def all_ready(folder: Path, name: str, part: str, group: int) -> None:
    """Say that one is ready for a part, and wait until so many are, or have had the time for it."""
    (folder / f"{name}.{part}.ready").touch()
    ends = time.monotonic() + PATIENCE_S
    while len(list(folder.glob(f"*.{part}.ready"))) < group and time.monotonic() < ends:
        time.sleep(0.2)
