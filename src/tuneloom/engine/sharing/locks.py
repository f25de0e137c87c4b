"""Locks on devices, held by the process that uses them for as long as it does."""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager

from tuneloom.engine.sharing.folder import open_shared, shared_folder
from tuneloom.errors import EngineError

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
