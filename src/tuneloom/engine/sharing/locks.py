"""Locks on devices, held by the process that uses them, and the folder of a machine where they lie."""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote

from tuneloom.errors import EngineError

VARIABLE = "TUNELOOM_DEVICE_LOCKS"
_DEFAULT = "/tmp/tuneloom-devices"  # TMPDIR differs from user to user
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_EVERYBODY = 0o1777  # whoever made a file may remove it, and nobody else


def boot_id() -> str:
    """What this machine has been called since it was started; the same in all its containers."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return "unknown"


def shared_folder(*parts: str) -> Path:
    """A folder that every user of this machine may write to; raises EngineError if there can't be one.

    A folder that several machines see, as on a network drive, has one in it for each of them.
    """
    folder = Path(os.environ.get(VARIABLE) or _DEFAULT)
    try:
        _make(folder)
        for part in (boot_id(), *parts):
            folder /= part
            _make(folder)
    except OSError as error:
        raise EngineError(
            f"devices can't be locked in {folder}: {error.strerror}; set {VARIABLE} to a folder that all "
            "users of this machine may write to"
        ) from error
    return folder


def open_shared(folder: Path, name: str) -> int:
    """A descriptor of a file in such a folder, made if need be, that nothing but a lock is wanted of."""
    path = folder / quote(name, safe="")
    while True:
        try:  # without O_CREAT: Linux refuses that for files of others in a folder of everybody's
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            pass
        try:
            made = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        except FileExistsError:
            continue
        os.fchmod(made, 0o666)
        return made


def _make(folder: Path) -> None:
    try:
        folder.mkdir()
    except FileExistsError:
        return
    folder.chmod(_EVERYBODY)


_LOCKS = "locks"
_NEXT = ".next"


def core_lock(core: int) -> str:
    """The name of the lock on a core of this machine."""
    return f"core-{core}"


@contextmanager
def holding(names: Iterable[str], *, alone: bool, waits: Callable[[], None]) -> Iterator[None]:
    """Hold locks: alone, or beside others that don't have to be alone either.

    Before waiting for one, `waits` is called, once. Locks are taken in the order of their names, so that
    nobody waits in a circle. Raises EngineError if there can be no locks.
    """
    told: list[bool] = []

    def tell() -> None:
        if not told:
            told.append(True)
            waits()

    with ExitStack() as held:
        for name in sorted(names):
            held.callback(os.close, _taken(name, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, tell))
        yield


def _taken(name: str, mode: int, waits: Callable[[], None]) -> int:
    """A descriptor that holds a lock.

    Whoever waits for the lock holds the place of the next one, which is needed to take it: a process that
    uses a device again and again has to let in the one that waits.
    """
    folder = shared_folder(_LOCKS)
    try:
        place, lock = open_shared(folder, name + _NEXT), open_shared(folder, name)
    except OSError as error:
        raise EngineError(f"device {name} can't be locked: {error}") from error
    try:
        _wait_for(place, fcntl.LOCK_EX, waits)
        _wait_for(lock, mode, waits)
    except BaseException:
        os.close(lock)
        raise
    finally:
        os.close(place)
    return lock


def _wait_for(descriptor: int, mode: int, waits: Callable[[], None]) -> None:
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        waits()
        fcntl.flock(descriptor, mode)
