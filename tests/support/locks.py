"""Who waits for a device that a test holds."""

import fcntl
from pathlib import Path


def someone_waits(folder: Path, lock: str) -> bool:
    """Whether a process holds the place of the next one at a lock, somewhere below a folder."""
    for path in folder.glob(f"*/locks/{lock}.next"):
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False
