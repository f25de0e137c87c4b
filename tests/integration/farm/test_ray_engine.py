"""The engine on Ray fulfils the contract of engines, on three simulated machines."""

import os
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tuneloom.engine.api import Engine
from tuneloom.engine.calls import CallEnded, Place, Returned
from tuneloom.engine.ray.engine import RayEngine
from tuneloom.engine.ray.messages import Charge
from tuneloom.engine.reports import ResourceJoined
from tuneloom.model import Host
from tuneloom.testing.engine_contract import EngineContract
from tuneloom.testing.surveys import SMALL

if TYPE_CHECKING:
    from tuneloom.engine.ray.simulated import SimulatedCluster


def at(machine: str) -> Place:
    return Place(resource=f"{machine}/host", machine=machine)


class SharedEngine:
    """One engine for all tests; only a test that closes it costs a new one."""

    def __init__(self, simulated: "SimulatedCluster") -> None:
        self._simulated = simulated
        self._engine: RayEngine | None = None

    def ready(self) -> RayEngine:
        if self._engine is None or self._engine.closed:
            cluster = self._simulated.connect()
            self._engine = RayEngine(
                cluster, lambda node: Charge(machine=node.name, survey=SMALL, argument=node.name)
            )
            self._engine.prepare()
        return self._engine

    def tidy(self) -> None:
        engine = self._engine
        if engine is None or engine.closed:
            return
        for worker in ("w", "gpu"):
            engine.release(worker)
        while not {"alder", "birch", "cedar"} <= engine.facts.keys():
            engine.poll(1.0)
        engine.poll(0)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()


@pytest.fixture(scope="module")
def shared(simulated: "SimulatedCluster") -> Iterator[SharedEngine]:
    shared = SharedEngine(simulated)
    yield shared
    shared.close()


class TestRayEngine(EngineContract):
    place = at("birch")

    @pytest.fixture
    def engine(self, shared: SharedEngine) -> Iterator[Engine]:
        yield shared.ready()
        shared.tidy()

    def elsewhere(self) -> Place:
        return at("cedar")

    def lose_machine(self, engine: Engine, machine: str) -> None:
        assert isinstance(engine, RayEngine)
        os.kill(int(engine.facts[machine]["pid"]), signal.SIGKILL)

    def test_a_machine_whose_agent_died_is_used_again(self, engine: Engine) -> None:
        assert isinstance(engine, RayEngine)
        self.lose_machine(engine, "birch")
        joined = self._await(
            engine,
            lambda report: isinstance(report, ResourceJoined) and isinstance(report.offer.resource, Host),
        )
        assert isinstance(joined, ResourceJoined) and joined.offer.resource.machine == "birch"
        engine.start("it", self.call("add", 1, 2))
        assert isinstance(self._ends(engine, "it")[0], CallEnded)

    def test_workers_end_with_their_agent(self, engine: Engine) -> None:
        engine.start("it", self.call("where", worker="w"))
        (ended,) = self._ends(engine, "it")
        assert isinstance(ended.result, Returned)
        worker = int(ended.result.value[0])
        os.kill(worker, 0)
        self.lose_machine(engine, "birch")
        self._await(engine, lambda report: isinstance(report, ResourceJoined))
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
