"""Who measures on which devices of this machine: each process says so in a file that it keeps locked."""

import fcntl
import json
import os
import secrets
import socket
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tuneloom.engine.calls import Call
from tuneloom.engine.sharing.locks import core_lock, open_shared, shared_folder

_RESERVATIONS = "reservations"
_CHOOSING = "choosing"
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Another process that measures on this machine: the cores and locks of its devices."""

    by: str
    cores: frozenset[int]
    locks: frozenset[str]

    def __str__(self) -> str:
        return self.by


class Reservation:
    """The devices of this process, known to all others until it is closed or the process ends.

    Cores are chosen so that nobody else measures there, if enough are left for everything else. Where
    none are, processes share them, and the locks let them measure in turn.
    """

    def __init__(self, every: Iterable[int], wanted: int) -> None:
        self._folder = shared_folder(_RESERVATIONS)
        self._path = self._folder / f"{secrets.token_hex(8)}{_SUFFIX}"
        self._lock: int | None = None
        self._seen: tuple[int, Sequence[Neighbour]] = -1, ()
        with _choosing(self._folder):
            _remove_abandoned(self._folder)
            self.cores = chosen_cores(every, wanted, self.others())
            self._write(core_lock(core) for core in self.cores)

    def note(self, locks: Iterable[str]) -> None:
        """Let others know which locks its devices have."""
        with _choosing(self._folder):
            self._write(locks)

    def others(self) -> Sequence[Neighbour]:
        """Everybody else who measures here now."""
        paths = (path for path in self._folder.glob(f"*{_SUFFIX}") if path != self._path)
        self._seen = (
            self._folder.stat().st_mtime_ns,
            [neighbour for path in paths if (neighbour := _living(path)) is not None],
        )
        return self._seen[1]

    def known_others(self) -> Sequence[Neighbour]:
        """The same as it was when somebody last asked, unless files came or went since then."""
        return self._seen[1] if self._seen[0] == self._folder.stat().st_mtime_ns else self.others()

    def shared_with(self, locks: Iterable[str]) -> str:
        """Who else measures on a device with these locks, in words; empty if nobody does."""
        wanted = frozenset(locks)
        return ", ".join(sorted(str(other) for other in self.others() if wanted & other.locks))

    def fitted(self, call: Call) -> Call:
        """A call that disturbs nobody who measures: off their cores, or beside them only while they don't."""
        if call.alone or call.cores is None:
            return call
        taken = frozenset[int]().union(*(other.cores for other in self.known_others())) & call.cores
        if not taken:
            return call
        left = call.cores - taken
        return replace(call, cores=left) if left else replace(call, locks=tuple(map(core_lock, taken)))

    def close(self) -> None:
        """Have no devices any more."""
        if self._lock is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def _write(self, locks: Iterable[str]) -> None:
        """Say what is ours in a new file, which is locked before anybody sees it."""
        said = {"by": _own_name(), "cores": sorted(self.cores), "locks": sorted(set(locks))}
        unseen = self._path.with_suffix(".new")
        lock = os.open(unseen, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        os.fchmod(lock, 0o644)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, json.dumps(said).encode())
        unseen.rename(self._path)
        if self._lock is not None:
            os.close(self._lock)
        self._lock = lock


def _living(path: Path) -> Neighbour | None:
    """What a file says; None if its process is gone."""
    with suppress(FileNotFoundError), path.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            said = json.loads(file.read())
            return Neighbour(by=said["by"], cores=frozenset(said["cores"]), locks=frozenset(said["locks"]))
        if os.fstat(file.fileno()).st_ino != path.stat().st_ino:  # it has just been written anew
            return _living(path)
    return None


def _remove_abandoned(folder: Path) -> None:
    """Remove files of processes that are gone, as far as they are this user's."""
    for path in folder.glob(f"*{_SUFFIX}"):
        with suppress(OSError):
            if _living(path) is None:
                path.unlink()


def chosen_cores(every: Iterable[int], wanted: int, others: Sequence[Neighbour]) -> frozenset[int]:
    """The last cores on which nobody measures, if another is left; else those with the fewest processes."""
    cores = sorted(every)
    users = Counter(core for other in others for core in other.cores)
    free = [core for core in cores if not users[core]]
    if not wanted or len(free) > wanted:
        return frozenset(free[len(free) - wanted :])
    taken = [core for core in cores if users[core]]
    shared = sorted(taken, key=lambda core: (users[core], -core)) if len(taken) >= wanted else cores[::-1]
    return frozenset(shared[:wanted])


@contextmanager
def _choosing(folder: Path) -> Iterator[None]:
    """One process chooses at a time, so that each sees what the others have chosen."""
    descriptor = open_shared(folder, _CHOOSING)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _own_name() -> str:
    words = [Path(sys.argv[0]).name, *sys.argv[1:2]] if sys.argv else []
    return f"{' '.join(filter(None, words)) or 'python'} (pid {os.getpid()} on {socket.gethostname()})"
