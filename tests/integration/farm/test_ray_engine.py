"""The engine on Ray fulfils the contract of engines, on three simulated machines."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from support.engines.surveys import SMALL
from tuneloom.engine.api import Engine, MachineLost, ResourceJoined
from tuneloom.engine.calls import CallEnded, Place, Returned
from tuneloom.engine.ray.engine import PATIENCE_S, RayEngine
from tuneloom.engine.ray.messages import AgentSpec
from tuneloom.model import Host
from tuneloom.testing.contracts.engine import EngineContract

if TYPE_CHECKING:
    from support.engines.simulated_cluster import SimulatedCluster


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
                cluster, lambda node: AgentSpec(machine=node.name, survey=SMALL, argument=node.name)
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

    def test_workers_end_with_their_agent_and_its_machine_is_used_again(self, engine: Engine) -> None:
        engine.start("it", self.call("where", worker="w"))
        (ended,) = self._ends(engine, "it")
        assert isinstance(ended.result, Returned)
        worker = int(ended.result.value[0])
        os.kill(worker, 0)
        self.lose_machine(engine, "birch")
        self._require_back(engine, "birch")
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)

    def test_a_machine_whose_agent_hangs_is_lost_and_used_again(
        self, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert isinstance(engine, RayEngine)
        monkeypatch.setattr("tuneloom.engine.ray.engine.SILENCE_S", 2 * PATIENCE_S)
        hung = int(engine.facts["birch"]["pid"])
        os.kill(hung, signal.SIGSTOP)
        try:
            lost = self._await(engine, lambda r: isinstance(r, MachineLost) and r.name == "birch")
            assert isinstance(lost, MachineLost) and lost.reason == "it has not answered for 10 s"
            self._require_back(engine, "birch")
            assert engine.facts["birch"]["pid"] != hung
        finally:
            with suppress(ProcessLookupError):
                os.kill(hung, signal.SIGKILL)

    def _require_back(self, engine: Engine, machine: str) -> None:
        joined = self._await(
            engine,
            lambda report: (
                isinstance(report, ResourceJoined)
                and isinstance(report.offer.resource, Host)
                and report.offer.resource.machine == machine
            ),
        )
        assert joined is not None
        engine.start("again", self.call("add", 1, 2))
        assert isinstance(self._ends(engine, "again")[0], CallEnded)
