"""Engines of this process get the parent of their workers from the warm interpreter."""

import subprocess
from collections.abc import Mapping, Sequence

import pytest

from tuneloom.engine import processes
from tuneloom.testing.warm import WarmInterpreter, WarmProcess
from tuneloom.testing.warm.fork import started_by

REALLY = processes.start_python


@pytest.fixture(autouse=True)
def warm_parents(warm: WarmInterpreter, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parent that imports nothing is started as it is for users: that takes no time."""

    def start_python(
        words: Sequence[str], descriptor: int, environment: Mapping[str, str]
    ) -> "subprocess.Popen[bytes] | WarmProcess":
        has_warm_up = len(words) > 3
        start = started_by(warm.address) if has_warm_up else REALLY
        process: subprocess.Popen[bytes] | WarmProcess = start(words, descriptor, environment)
        return process

    monkeypatch.setattr(processes, "start_python", start_python)
