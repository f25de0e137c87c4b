"""The engine without processes keeps the contract of those that have some."""

from collections.abc import Iterator

import pytest

from support.engines.pretended_calls import PretendedCalls, takes_s
from tuneloom.engine.api import Engine, MachineLost
from tuneloom.engine.calls import Place
from tuneloom.testing.contracts.engine import EngineContract
from tuneloom.testing.engines.scripted import ScriptedEngine


class TestScriptedEngine(EngineContract):
    place = Place(resource="one/host", machine="one")

    @pytest.fixture
    def engine(self) -> Iterator[Engine]:
        calls = PretendedCalls()
        engine = ScriptedEngine(calls, takes_s, calls.released)
        yield engine
        engine.close()

    def elsewhere(self) -> Place:
        return Place(resource="two/host", machine="two")

    def lose_machine(self, engine: Engine, machine: str) -> None:
        assert isinstance(engine, ScriptedEngine)
        engine.happens(engine.now_s() + 1, MachineLost(name=machine, reason="no heartbeat"))
