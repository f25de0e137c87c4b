"""What happens in a fresh fork of the warm interpreter: it becomes the process that was asked for."""

import fcntl
import importlib
import importlib.util
import os
import random
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from support.warm.process import WarmProcess
from tuneloom.engine import processes
from tuneloom.engine.worker import die_with_parent

_REALLY = processes.start_python
_LIGHT = "tuneloom.tuners.mock.warmth:warm_up"


def become(order: Mapping[str, Any], descriptors: Sequence[int], address: str) -> NoReturn:
    """Run the program that the order names, then end; never returns."""
    code = 1
    try:
        die_with_parent()
        os.setsid()
        _take_descriptors(dict(zip(order["numbers"], descriptors, strict=True)))
        _take_surroundings(order["folder"], order["environment"])
        processes.start_python = started_by(address)
        code = _exit_code(order["words"])
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)


def started_by(address: str) -> Any:
    """A stand-in for `tuneloom.engine.processes.start_python` that asks a warm interpreter.

    A parent that imports little is started as it is for users: forks of a small process are cheaper.
    """

    def start_python(
        words: Sequence[str], descriptor: int, environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes] | WarmProcess":
        if _LIGHT in words:
            return _REALLY(words, descriptor, environment)
        with open(os.devnull) as nothing:
            given = {0: nothing.fileno(), 1: 1, 2: 2, descriptor: descriptor}
            return WarmProcess(address, words, environment, os.getcwd(), given)

    return start_python


def _take_descriptors(given: Mapping[int, int]) -> None:
    """Put descriptors under their numbers and close all others."""
    above = max(given) + 1
    waiting = {number: fcntl.fcntl(descriptor, fcntl.F_DUPFD, above) for number, descriptor in given.items()}
    for number, descriptor in waiting.items():
        os.dup2(descriptor, number)
    for number in [int(name) for name in os.listdir("/proc/self/fd")]:
        if number not in given:
            with suppress(OSError):
                os.close(number)


def _take_surroundings(folder: str, environment: Mapping[str, str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    random.seed()
    tempfile.tempdir = None
    sys.path[:0] = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
    importlib.invalidate_caches()


def _exit_code(words: Sequence[str]) -> int:
    try:
        run_python(list(words))
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    return 0


def run_python(words: list[str]) -> None:
    """Read words as Python's own command line does: `-c CODE …`, `-m MODULE …` or `SCRIPT …`."""
    if words[0] == "-c":
        sys.argv, sys.path[:0] = ["-c", *words[2:]], [""]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), main.__dict__)
        return
    path, found_in = words[0], str(Path(words[0]).parent)
    if path == "-m":
        spec = importlib.util.find_spec(words[1])
        assert spec is not None and spec.origin is not None
        path, found_in, words = spec.origin, os.getcwd(), words[1:]
    sys.argv, sys.path[:0] = [path, *words[1:]], [found_in]
    runpy.run_path(path, run_name="__main__")
