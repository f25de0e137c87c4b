"""Functions that behave badly on purpose, to be called in workers."""

import os
import signal
import sys
import tempfile
import time
from typing import NoReturn

from tuneloom.model import DeviceGone, Failure, FailureKind

_KEPT: dict[str, int] = {}


def add(left: int, right: int) -> int:
    return left + right


def where() -> tuple[int, set[int]]:
    """This process and the cores it may use."""
    return os.getpid(), os.sched_getaffinity(0)


def count(name: str) -> int:
    """How often this very process was asked."""
    _KEPT[name] = _KEPT.get(name, 0) + 1
    return _KEPT[name]


def spoil() -> Failure:
    """A failure after which this process should serve nobody else."""
    return Failure(kind=FailureKind.RUN_ERROR, message="the device is upset", spoils_worker=True)


def lose_device() -> DeviceGone:
    """What a call returns that finds its device gone."""
    return DeviceGone(reason="it was unplugged")


class PuzzleError(Exception):
    """Can be pickled, but not unpickled: its constructor wants more than an exception keeps."""

    def __init__(self, code: int, *, why: str) -> None:
        super().__init__(f"{code}: {why}")


def unreadable() -> PuzzleError:
    """A value that its receiver can't read."""
    return PuzzleError(3, why="of its constructor")


def unsendable() -> object:
    """A value that can't be pickled."""
    return lambda: None


def crash() -> NoReturn:
    os.kill(os.getpid(), signal.SIGSEGV)
    raise AssertionError("unreachable")


def hang() -> NoReturn:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    while True:
        time.sleep(3600)


def await_file(path: str) -> bool:
    """Come back as soon as there is such a file."""
    while not os.path.exists(path):
        time.sleep(0.01)
    return True


def litter() -> str:
    """Leave a temporary folder behind and say where."""
    return tempfile.mkdtemp()


def litter_and_crash(note: str) -> NoReturn:
    """Leave a temporary folder behind, write down where, and die."""
    with open(note, "w") as file:
        file.write(tempfile.mkdtemp())
    crash()


def eat_memory() -> int:
    hoard = []
    while True:
        hoard.append(bytearray(64 << 20))


def chatter() -> int:
    """Print megabytes to stdout and stderr, below and above Python."""
    line = b"x" * 1023 + b"\n"
    for _ in range(4096):
        os.write(1, line)
        os.write(2, line)
    print("done", file=sys.stderr)
    return 8


def refuse() -> NoReturn:
    raise ValueError("no such thing")
