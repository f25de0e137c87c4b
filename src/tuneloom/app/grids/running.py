"""Runs all combinations of a grid one after another, each in a process and a store of its own."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from typing import Any

from tuneloom.app.bundles.folders import write_whole
from tuneloom.app.grids.figures import run_figures
from tuneloom.app.grids.grid import Combination, Grid
from tuneloom.errors import OutputError, StoreError

FINISHED, FAILED, TIMED_OUT = "finished", "failed", "timed out"
RUNS, STORE, RESULT, LOG = "runs", "store.db", "result.json", "log.txt"
_GRACE_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """How one combination ended; `figures` are those of `run_figures`, empty if it never began."""

    combination: Combination
    status: str
    message: str
    wall_s: float
    figures: dict[str, Any]

    @property
    def finished(self) -> bool:
        return self.status == FINISHED

    def to_json(self) -> dict[str, Any]:
        return {
            "parameters": dict(self.combination.parameters),
            "status": self.status,
            "message": self.message,
            "wall_s": self.wall_s,
            "figures": self.figures,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "RunResult":
        return cls(
            combination=Combination(data["parameters"]),
            status=data["status"],
            message=data["message"],
            wall_s=data["wall_s"],
            figures=data["figures"],
        )


RunListener = Callable[[int, RunResult, bool], None]
"""Told of every combination: its number, how it ended, and whether that was known before."""


def run_grid(grid: Grid, folder: Path, listener: RunListener) -> list[RunResult]:
    """Run what has not finished yet; what was finished by an earlier start is kept.

    A run that fails or hangs costs itself only. Raises OutputError if the folder can't be
    used or another process is at work in it.
    """
    results = []
    with _alone_in(folder):
        for number, combination in enumerate(grid.combinations(), 1):
            known = known_result(folder, combination)
            result = known or run_combination(combination, folder, grid.path.parent, grid.limit_s)
            results.append(result)
            listener(number, result, known is not None)
    return results


def known_result(folder: Path, combination: Combination) -> RunResult | None:
    """What an earlier start found, if it finished."""
    path = folder / RUNS / combination.id / RESULT
    try:
        result = RunResult.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError):
        return None
    return result if result.finished else None


def run_combination(
    combination: Combination, folder: Path, models: Path, limit_s: float | None = None
) -> RunResult:
    """Make one run in a child process and keep how it ended; models' paths count from `models`."""
    place = folder / RUNS / combination.id
    rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    started = time.monotonic()
    status, message = _carry_out(combination.arguments(models), place, limit_s)
    result = RunResult(
        combination=combination,
        status=status,
        message=message,
        wall_s=time.monotonic() - started,
        figures=_figures(place),
    )
    write_whole(place / RESULT, json.dumps(result.to_json(), indent=1) + "\n")
    return result


def _carry_out(arguments: list[str], place: Path, limit_s: float | None) -> tuple[str, str]:
    command = [sys.executable, "-m", "tuneloom.cli.main", "tune", *arguments]
    command += ["--store", str(place / STORE), "--quiet"]
    with (place / LOG).open("w+", encoding="utf-8") as log:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TUNELOOM_HOME": str(place)},
            start_new_session=True,
        )
        try:
            code = child.wait(limit_s)
        except subprocess.TimeoutExpired:
            _end(child)
            return TIMED_OUT, f"ended after {limit_s:g} s"
        except BaseException:
            _end(child)
            raise
        log.seek(0)
        return (FINISHED, "") if code == 0 else (FAILED, _last_line(log.read(), code))


def _end(child: "subprocess.Popen[bytes]") -> None:
    """Ask a run to stop, then make it."""
    child.terminate()
    try:
        child.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _figures(place: Path) -> dict[str, Any]:
    if not (place / STORE).exists():
        return {}
    try:
        return run_figures(str(place / STORE))
    except StoreError:
        return {}


def _last_line(text: str, code: int) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("tuneloom: ") if lines else f"exit code {code}"


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Make the folder ours until we leave it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise OutputError(f"can't write to {folder}: {error.strerror}; choose another place") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputError(f"another process is using {folder}; wait until it has finished") from error
        yield
