"""A process that has imported everything once and forks a worker on demand.

Importing TVM takes seconds; a fork takes milliseconds. So one warm process, which
never runs a candidate itself, is the parent of all workers of a host.
"""

import contextlib
import fcntl
import gc
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import warnings
from pathlib import Path

from tuneloom.engine.calls import Call
from tuneloom.engine.channel import Channel
from tuneloom.engine.worker import carry_out, die_with_parent, serve, silence

# A request is 'F' (fork; a socket travels along), 'R' (reap a pid) or 'E' (a pid is ending: reap it
# some time, no answer); an answer is a signed number: a pid, or an exit status as os.waitpid gives it.
REQUEST = struct.Struct("!cq")
ANSWER = struct.Struct("!q")


_PREFIX = "tuneloom-workers-"
_UNSEEN = ".tuneloom-workers-"
"""The name of a folder until its lock is held: nobody takes it for abandoned meanwhile."""
_LOCK = "lock"
_AUTOGROUP = Path("/proc/self/autogroup")


class Scratch:
    """One folder for a family of workers, with one in it for each: the parent of a killed one tidies up.

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


def keep_niceness() -> None:
    """Give a session of its own the niceness of its process.

    Linux may share a CPU among sessions before it looks at their processes (`sched_autogroup`): who is nice
    in a new session then takes half of it from those in others.
    """
    niceness = os.getpriority(os.PRIO_PROCESS, 0)
    if niceness > 0 and os.getsid(0) == os.getpid():
        with contextlib.suppress(OSError):
            _AUTOGROUP.write_text(str(niceness))


def main() -> None:
    """Warm up with the call given as a name, then fork on request until the engine is gone."""
    control = socket.socket(fileno=int(sys.argv[1]))
    die_with_parent()
    keep_niceness()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries may keep sleeping threads; no worker uses what they hold.
    warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork.*")
    warmed = carry_out(Call(function=sys.argv[2])) if len(sys.argv) > 2 else None
    Channel(control).send(warmed)
    gc.collect()
    gc.freeze()
    scratch = Scratch()
    ending: set[int] = set()
    while _answer_one(control, scratch, ending):
        gone = {pid for pid in ending if _gone(pid)}
        for pid in gone:
            scratch.tidy(pid)
        ending -= gone
    for pid in ending:
        _reap(pid)
    scratch.close()


def _answer_one(control: socket.socket, scratch: Scratch, ending: set[int]) -> bool:
    data, descriptors, _, _ = socket.recv_fds(control, REQUEST.size, 1)
    if not data:
        return False
    order, pid = REQUEST.unpack(data)
    if order == b"E":
        ending.add(pid)
        return True
    if order == b"F":
        answer = _fork(control, scratch, descriptors[0])
    else:
        answer = _reap(pid)
        scratch.tidy(pid)
    control.sendall(ANSWER.pack(answer))
    return True


def _fork(control: socket.socket, scratch: Scratch, descriptor: int) -> int:
    pid = os.fork()
    if pid:
        os.close(descriptor)
        return pid
    try:
        control.close()
        die_with_parent()
        os.setpgid(0, 0)
        silence()
        scratch.enter()
        serve(Channel(socket.socket(fileno=descriptor)))
    finally:
        os._exit(0)


def _gone(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _reap(pid: int) -> int:
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return 0


if __name__ == "__main__":
    main()
