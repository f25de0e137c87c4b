"""Builds and runs in a process of their own, so that a crash, a hang or a flood costs one trial."""

import os
import selectors
import signal
import subprocess
import sys
import threading
from collections import deque
from typing import Any, cast

from tuneloom.errors import EngineError
from tuneloom.model import Artifact, Candidate, Failure, FailureKind, Measurement, MeasuringPolicy, Task
from tuneloom.tuners.kernel.worker import receive, send

_TAIL = 2000  # bytes of what a worker printed that a failure may quote
_START_S = 60.0


class _Worker:
    """One child process and its pipes; the last bytes of what it prints are kept."""

    def __init__(self) -> None:
        answers, write_end = os.pipe()
        command = [sys.executable, "-m", "tuneloom.tuners.kernel.worker", str(write_end)]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(write_end,),
            start_new_session=True,
        )
        os.close(write_end)
        self._answers = os.fdopen(answers, "rb", buffering=0)
        self._printed: deque[bytes] = deque(maxlen=8)
        self._drain = threading.Thread(target=self._drained, daemon=True)
        self._drain.start()
        if self.answer(_START_S) != "ready":
            self.end()
            raise EngineError(f"a kernel worker did not start: {self.printed()}")

    def _drained(self) -> None:
        assert self.process.stdout is not None
        while part := os.read(self.process.stdout.fileno(), 65536):
            self._printed.append(part[-_TAIL:])

    def ask(self, stage: str, arguments: tuple[Any, ...]) -> None:
        """Send one request; a worker that is already gone shows when it does not answer."""
        assert self.process.stdin is not None
        try:
            send(cast(Any, self.process.stdin), (stage, arguments))
        except (BrokenPipeError, OSError):
            return

    def answer(self, timeout_s: float) -> Any:
        """The next answer; raises TimeoutError, or EOFError when the process died."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._answers, selectors.EVENT_READ)
            if not selector.select(timeout_s):
                raise TimeoutError
        return receive(cast(Any, self._answers))

    def printed(self) -> str:
        """The end of what the worker printed."""
        return b"".join(self._printed)[-_TAIL:].decode(errors="replace").strip()

    def end(self) -> int:
        """Kill the process and everything it started; returns its exit status."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self.process.kill()
        status = self.process.wait()
        self._drain.join(timeout=5)
        for stream in (self.process.stdin, self.process.stdout, self._answers):
            if stream is not None:
                _close(stream)
        return status


def _close(stream: Any) -> None:
    try:
        stream.close()
    except BrokenPipeError:
        return


class IsolatedTuner:
    """Build and profile of the kernel tuner behind a warm worker; use as a context manager."""

    def __init__(self) -> None:
        self._worker: _Worker | None = None

    def __enter__(self) -> "IsolatedTuner":
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None

    def build(self, task: Task, candidate: Candidate, policy: MeasuringPolicy) -> Artifact | Failure:
        """Build one candidate; a crash is a build error, a hang a build timeout."""
        kinds = (FailureKind.BUILD_ERROR, FailureKind.BUILD_TIMEOUT)
        answer = self._asked("build", (task, candidate, policy), policy.build_timeout_s, kinds)
        return cast(Artifact | Failure, answer)

    def profile(
        self, task: Task, artifact: Artifact, policy: MeasuringPolicy, best_s: float | None
    ) -> Measurement | Failure:
        """Run one artifact; a crash is a run error, a hang a run timeout."""
        kinds = (FailureKind.RUN_ERROR, FailureKind.RUN_TIMEOUT)
        answer = self._asked("profile", (task, artifact, policy, best_s), policy.run_timeout_s, kinds)
        return cast(Measurement | Failure, answer)

    def _asked(
        self, stage: str, arguments: tuple[Any, ...], timeout_s: float, kinds: tuple[FailureKind, FailureKind]
    ) -> Any:
        worker = self._worker or _Worker()
        self._worker = worker
        worker.ask(stage, arguments)
        try:
            return worker.answer(timeout_s)
        except TimeoutError:
            self._worker = None
            worker.end()
            return Failure(kind=kinds[1], message=f"no answer within {timeout_s:g} s")
        except EOFError:
            self._worker = None
            status = worker.process.wait(timeout=5)
            worker.end()
            return Failure(kind=kinds[0], message=_death(status, worker.printed()))


def _death(status: int, printed: str) -> str:
    cause = (
        f"the process was ended by {_signal(-status)}" if status < 0 else f"the process exited with {status}"
    )
    return f"{cause}; it printed: {printed[-300:]}" if printed else cause


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
