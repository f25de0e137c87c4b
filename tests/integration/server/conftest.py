"""Servers and executors as users start them, on each database in turn."""

import re
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.commands import Workplace
from support.ending import ending
from support.warm import WarmInterpreter
from tuneloom.client import Client

PATIENCE_S = 240.0


@dataclass
class Team:
    """A server without executors of its own, its first token, and executors beside it."""

    place: str
    workplace: Workplace
    started: list[Any] = field(default_factory=list)
    token: str = ""

    def serve(self, *words: str) -> Client:
        """Start a server; returns a client of it, with the first token."""
        settings = self.workplace.folder / "serve.toml"
        settings.write_text('port = 0\nexecutors = 0\ntuners = ["tvm", "mock"]\n')
        process = self._start("serve", "--config", str(settings), "--store", self.place, *words)
        found = re.search(r"http://\S+", process.stdout.readline())
        assert found, "a server says where it listens"
        if not self.token:
            self.token = process.stdout.readline().split()[-1]
        return Client(found[0], self.token)

    def execute(self, *words: str) -> Any:
        """Start an executor."""
        return self._start("executor", "--store", self.place, *words)

    def execute_until(self, trials: int, number: signal.Signals) -> Any:
        """Start an executor that gets a signal when it has made so many trials."""
        words = ending(trials, number, "executor", "--store", self.place)
        self.started.append(self.workplace.start_python(*words))
        return self.started[-1]

    def wait_until(self, true: Callable[[], bool]) -> None:
        """Wait for something to happen."""
        end_s = time.monotonic() + PATIENCE_S
        while not true():
            assert time.monotonic() < end_s, "it never happened"
            time.sleep(0.05)

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def _start(self, *words: str) -> Any:
        self.started.append(self.workplace.start(*words))
        return self.started[-1]


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store's place, on each database in turn."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return str(tmp_path / "store.db")


@pytest.fixture
def team(place: str, tmp_path: Path, warm: WarmInterpreter) -> Iterator[Team]:
    """What is started for a test ends with it."""
    started = Team(place, Workplace(folder=tmp_path, warm=warm))
    yield started
    started.end()
