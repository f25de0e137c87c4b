"""The program as users start it: a process of its own, with a home of its own."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from support.warm import WarmInterpreter, WarmProcess
from tuneloom.store import open_store

Program = subprocess.Popen[str] | WarmProcess
"""A Python program under way."""
_TOO_LONG_S = 900.0
_GLANCE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """A folder to work in, and the store of its runs.

    With a warm interpreter, programs start in milliseconds instead of seconds.
    """

    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    warm: WarmInterpreter | None = None

    @property
    def store(self) -> str:
        return str(self.folder / "home" / "store.db")

    def start(self, *words: str, **more: str) -> Program:
        """Start `tuneloom` with these words; `more` is added to its environment."""
        return self.start_python("-m", "tuneloom.cli.main", *words, **more)

    def start_python(self, *words: str, **more: str) -> Program:
        """Start Python with these words."""
        if self.warm is not None:
            return self.warm.start(words, self.folder, self.variables(**more))
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=self.folder,
            env=self.variables(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_hear_control_c,
        )

    def run(self, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
        """Run `tuneloom` to its end, whatever its exit code."""
        with ended_afterwards(self.start(*words, **more)) as process:
            out, error = process.communicate(timeout=_TOO_LONG_S)
            return subprocess.CompletedProcess(words, process.wait(), out, error)

    def variables(self, **more: str) -> dict[str, str]:
        home = {"TUNELOOM_HOME": str(self.folder / "home")}
        return {**os.environ, **home, **self.environment, **more}

    def trials(self) -> list[tuple[str, str]]:
        """Task and candidate of every trial in the store, in the order of commitment."""
        if not Path(self.store).exists():
            return []
        store = open_store(self.store)
        try:
            jobs = [job.id for run in store.runs() for job in store.jobs(run.id)]
            return [(t.task_key, t.trial.candidate.key) for job in jobs for t in store.trials(job)]
        finally:
            store.close()


def _hear_control_c() -> None:
    """Programs started in the background of a shell ignore Ctrl-C; this one should hear it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def ended_afterwards(process: Program) -> Iterator[Program]:
    """Leave no process and no open pipe behind, whatever a test finds out."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_until(process: Program, true: Callable[[], bool]) -> bool:
    """Wait until something is so, or the process has ended; whether it came to be so."""
    while process.poll() is None:
        if true():
            return True
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_GLANCE_S)
    return true()
