"""Starting and ending worker processes from the engine's side."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuneloom.engine.calls import DeathCause, ExitedWith, KilledBy, OutOfMemory, Raised
from tuneloom.engine.channel import Channel
from tuneloom.engine.nursery import ANSWER, REQUEST
from tuneloom.errors import EngineError

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_PATIENCE_S = 10.0  # on a busy machine even an end takes its time


@dataclass(slots=True)
class WorkerProcess:
    """A forked worker and our end of its channel."""

    pid: int
    channel: Channel

    def signal(self, number: int) -> None:
        """Send a signal to the process and to all it started, if they are still there."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def start_python(
    words: Sequence[str], descriptor: int, environment: Mapping[str, str]
) -> "subprocess.Popen[bytes]":
    """A Python process in a session of its own, with one of our descriptors under the same number."""
    return subprocess.Popen(
        [sys.executable, *words],
        pass_fds=[descriptor],
        env=environment,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


class Nursery:
    """The engine's handle on a warm process that forks workers."""

    def __init__(self, warm_up: str | None, environment: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair()
        words = ["-m", "tuneloom.engine.nursery", str(theirs.fileno())] + ([warm_up] if warm_up else [])
        self._process = start_python(words, theirs.fileno(), {**os.environ, **_ONE_THREAD, **environment})
        theirs.close()
        self._control = ours
        self._memory_kills = memory_kills()
        self._ordered: Channel | None = None
        self._spare: WorkerProcess | None = None
        try:
            self._await_warmth()
        except BaseException:
            self._process.kill()
            self.close()
            raise

    def fork(self) -> WorkerProcess:
        """A new worker, forked ahead unless it is the first; its successor is ordered at once."""
        if self._ordered is None and self._spare is None:
            self._order()
        self._take_delivery()
        worker, self._spare = self._spare, None
        assert worker is not None
        self._order()
        return worker

    def end(self, worker: WorkerProcess) -> None:
        """Kill a worker with all it started; its parent reaps it when it is gone."""
        worker.channel.close()
        worker.signal(signal.SIGKILL)
        with contextlib.suppress(EngineError):  # who is dead took all workers along
            self._ask(b"E", worker.pid)

    def how_it_ended(self, worker: WorkerProcess) -> DeathCause:
        """Reap a worker that closed its channel and say how it ended."""
        worker.channel.close()
        self._take_delivery()
        self._ask(b"R", worker.pid)
        status = self._answer()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.pid, signal.SIGKILL)
        kills, self._memory_kills = self._memory_kills, memory_kills()
        return cause_of(status, memory_ran_out=self._memory_kills > kills)

    def close(self) -> None:
        """Let the process reap what is ending and end itself; it is killed if that takes long."""
        with contextlib.suppress(EngineError, OSError):
            self._take_delivery()
        for unused in (self._ordered, self._spare.channel if self._spare else None):
            if unused is not None:
                unused.close()
        self._control.close()
        try:
            self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _order(self) -> None:
        """Ask for a worker without waiting for it."""
        ours, theirs = socket.socketpair()
        self._ordered = Channel(ours)
        with theirs:
            try:
                socket.send_fds(self._control, [REQUEST.pack(b"F", 0)], [theirs.fileno()])
            except OSError as error:
                raise EngineError(f"the process that starts workers has died ({error}); try again") from error

    def _take_delivery(self) -> None:
        """Read the answer to an order, which comes before the answer to anything asked later."""
        if self._ordered is not None:
            self._spare = WorkerProcess(pid=self._answer(), channel=self._ordered)
            self._ordered = None

    def _await_warmth(self) -> None:
        try:
            warmed = Channel(self._control).receive()
        except EOFError as error:
            raise EngineError(
                "the process that starts workers ended immediately; run again with --debug"
            ) from error
        if isinstance(warmed, Raised):
            raise EngineError(f"workers can't be prepared: {warmed.error}")

    def _ask(self, order: bytes, pid: int) -> None:
        try:
            self._control.sendall(REQUEST.pack(order, pid))
        except OSError as error:  # left alone, a broken pipe would be taken for the end of our output
            raise EngineError(f"the process that starts workers has died ({error}); try again") from error

    def _answer(self) -> int:
        try:
            data = self._control.recv(ANSWER.size, socket.MSG_WAITALL)
        except OSError:
            data = b""
        if len(data) < ANSWER.size:
            raise EngineError("the process that starts workers has died; try again")
        number: int = ANSWER.unpack(data)[0]
        return number


def cause_of(status: int, *, memory_ran_out: bool) -> DeathCause:
    """What a status says; a kill is for lack of memory if the kernel killed somebody for that lately."""
    if not os.WIFSIGNALED(status):
        return ExitedWith(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status)
    return OutOfMemory() if number == signal.SIGKILL and memory_ran_out else KilledBy(number)


def memory_kills() -> int:
    """How many processes of this machine the kernel has killed for lack of memory; 0 if it does not say."""
    try:
        with open("/proc/vmstat") as counters:
            return next((int(line.split()[1]) for line in counters if line.startswith("oom_kill ")), 0)
    except OSError:
        return 0
