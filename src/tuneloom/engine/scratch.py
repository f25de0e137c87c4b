"""Where workers put temporary files: a killed one can't tidy up, so its parent does."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "tuneloom-workers-"
_UNSEEN = ".tuneloom-workers-"
"""The name of a folder until its lock is held: nobody takes it for abandoned meanwhile."""
_LOCK = "lock"


class Scratch:
    """One folder for a family of workers, with a folder in it for each.

    A lock is held as long as any process of the family lives, so that the next family can
    tell what a dead one left behind and remove it.
    """

    def __init__(self) -> None:
        remove_abandoned()
        unseen = Path(tempfile.mkdtemp(prefix=_UNSEEN))
        self._lock = _locked(unseen / _LOCK)
        self._folder = unseen.rename(unseen.with_name(_PREFIX + unseen.name.removeprefix(_UNSEEN)))

    def enter(self) -> None:
        """Make this process, a worker, use a folder of its own; without room it keeps the shared one."""
        mine = self._folder / str(os.getpid())
        with contextlib.suppress(OSError):
            mine.mkdir()
            os.environ["TMPDIR"] = tempfile.tempdir = str(mine)

    def tidy(self, pid: int) -> None:
        """Remove what a worker that is gone left behind."""
        shutil.rmtree(self._folder / str(pid), ignore_errors=True)

    def close(self) -> None:
        """Remove everything; all workers are gone."""
        shutil.rmtree(self._folder, ignore_errors=True)


def remove_abandoned() -> None:
    """Remove the folders of families that are dead: nobody holds their locks."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            os.close(_locked(folder / _LOCK))
            shutil.rmtree(folder, ignore_errors=True)


def _locked(path: Path) -> int:
    """A descriptor that holds the lock of a file; OSError if somebody else does."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
