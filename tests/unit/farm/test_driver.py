"""The driver of a farm, with agents that say what a script lets them say."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from support.engines.several_machines import small_machine
from tuneloom.engine.api import MachineLost, ResourceJoined, ResourceLeft
from tuneloom.engine.calls import (
    Call,
    CallBegan,
    CallEnded,
    CallWaits,
    Lost,
    Place,
    Raised,
    ReadFiles,
    Returned,
)
from tuneloom.engine.machine import Offer
from tuneloom.engine.ray.artifacts import Receipt
from tuneloom.engine.ray.engine import READY_S, SILENCE_S, START_S, RayEngine
from tuneloom.engine.ray.messages import (
    AgentBroke,
    AgentLine,
    AgentReports,
    AgentSpec,
    ArtifactMissing,
    Drop,
    FilesGone,
    FromAgent,
    Gone,
    Hello,
    Inbox,
    LiveNodes,
    Node,
    Order,
    Start,
    Stop,
)
from tuneloom.errors import EngineError
from tuneloom.model import Artifact, Device


class ScriptedLine:
    """Keeps what it was told; its clock is an hour ahead of the driver's."""

    def __init__(self, machine: str, inbox: Inbox, clock: "Clock", *, broken: str = "") -> None:
        self.machine, self._inbox, self._clock, self._broken = machine, inbox, clock, broken
        self.slow = self.mute = False
        self.orders: list[Order] = []
        self.holders: dict[str, AgentLine] = {}
        self.hung_up = False

    def say(self, body: Any) -> None:
        self._inbox.put(FromAgent(sender=self, body=body))

    def tell(self, *reports: Any) -> None:
        self.say(AgentReports(now_s=self.now_s(), reports=reports))

    def now_s(self) -> float:
        return self._clock.now_s + 3600.0

    def started(self) -> list[Start]:
        return [order for order in self.orders if isinstance(order, Start)]

    def end(self, start: Start, value: object) -> None:
        now_s = self.now_s()
        self.tell(CallEnded(id=start.id, result=Returned(value=value), started_s=now_s - 1, ended_s=now_s))

    def ask_hello(self) -> None:
        if self.slow:
            return
        if self._broken:
            self.say(AgentBroke(reason=self._broken))
        else:
            offers = small_machine(self.machine).offers
            self.say(Hello(offers=offers, facts={}, now_s=self.now_s()))

    def ask_reports(self, patience_s: float) -> None:
        """The script says when there are some."""

    def ask_clock(self) -> None:
        if not self.mute:
            self.say(self.now_s())

    def order(self, number: int, orders: Sequence[Order], holders: Mapping[str, AgentLine]) -> None:
        self.orders += orders
        self.holders.update(holders)

    def hang_up(self, *, politely: bool = False) -> None:
        self.hung_up = True


class Clock:
    now_s = 100.0


class ScriptedCluster:
    def __init__(self, clock: Clock, *names: str) -> None:
        self.inbox: Inbox = SimpleQueue()
        self.clock = clock
        self.names = list(names)
        self.lines: dict[str, ScriptedLine] = {}
        self.broken: dict[str, str] = {}
        self.slow: set[str] = set()
        self.mute: set[str] = set()

    def nodes(self) -> tuple[Node, ...]:
        return tuple(Node(id=f"id-{n}", name=n, label=n, here=n == self.names[0]) for n in self.names)

    def agent(self, node: Node, spec: AgentSpec) -> ScriptedLine:
        broken = self.broken.get(node.name, "")
        line = self.lines[node.name] = ScriptedLine(node.name, self.inbox, self.clock, broken=broken)
        line.slow, line.mute = node.name in self.slow, node.name in self.mute
        return line

    def put(self, data: bytes) -> Any:
        return data

    def close(self) -> None:
        """Nothing has to be left."""


class ClockedEngine(RayEngine):
    """Under the clock of a test."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        super().__init__(cluster, lambda node: AgentSpec(machine=node.name, survey=""))
        self.cluster = cluster

    def now_s(self) -> float:
        return self.cluster.clock.now_s


@pytest.fixture
def engine() -> ClockedEngine:
    made = ClockedEngine(ScriptedCluster(Clock(), "a", "b"))
    made.prepare()
    return made


def on(machine: str, *arguments: object) -> Call:
    return Call(function="f", arguments=arguments, place=Place(resource=f"{machine}/host", machine=machine))


def test_machines_that_are_ready_from_the_start_are_not_reported_but_offered(engine: ClockedEngine) -> None:
    assert {offer.resource.machine for offer in engine.offers} == {"a", "b"}
    assert list(engine.poll(0)) == []


def test_what_is_offered_follows_devices_and_machines_that_come_and_go(engine: ClockedEngine) -> None:
    before = {offer.resource.name for offer in engine.offers}
    line = engine.cluster.lines["b"]
    board = Offer(resource=Device(name="b/board", key="board", machine="b"))
    line.tell(ResourceJoined(offer=board))
    engine.poll(0)
    assert {offer.resource.name for offer in engine.offers} == {*before, "b/board"}
    line.tell(ResourceLeft(name="b/board", reason="unplugged"))
    engine.poll(0)
    assert {offer.resource.name for offer in engine.offers} == before
    assert engine.away == {"b/board": "unplugged"}
    line.say(Gone(reason="its agent died"))
    engine.poll(0)
    assert {offer.resource.machine for offer in engine.offers} == {"a"}


def test_a_farm_without_a_usable_machine_says_why() -> None:
    cluster = ScriptedCluster(Clock(), "a")
    cluster.broken = {"a": "workers can't be prepared: no TVM"}
    with pytest.raises(EngineError, match="no machine of the farm can be used: a: workers can't be prepared"):
        ClockedEngine(cluster).prepare()


def test_times_are_of_the_drivers_clock(engine: ClockedEngine) -> None:
    engine.start("it", on("b"))
    engine.poll(0)
    engine.cluster.clock.now_s += 5
    line = engine.cluster.lines["b"]
    line.end(line.started()[0], 7)
    (ended,) = engine.poll(0)
    assert isinstance(ended, CallEnded) and ended.id == "it"
    assert (ended.started_s, ended.ended_s) == (104.0, 105.0)


def test_a_call_that_waits_for_a_device_is_told_under_its_own_id_and_on_the_drivers_clock(
    engine: ClockedEngine,
) -> None:
    engine.start("it", on("b"))
    engine.poll(0)
    line = engine.cluster.lines["b"]
    (start,) = line.started()
    engine.cluster.clock.now_s += 5
    line.tell(CallWaits(id=start.id), CallBegan(id=start.id, at_s=line.now_s() - 1, waited_s=4.0))
    assert engine.poll(0) == [CallWaits(id="it"), CallBegan(id="it", at_s=104.0, waited_s=4.0)]
    engine.stop("it")
    line.tell(CallWaits(id=start.id))
    assert engine.poll(0) == []


def test_an_answer_to_a_stopped_call_is_not_taken_for_one_to_its_successor(engine: ClockedEngine) -> None:
    line = engine.cluster.lines["b"]
    engine.start("it", on("b"))
    engine.stop("it")
    engine.start("it", on("b"))
    engine.poll(0)
    first, second = line.started()
    line.end(first, "old")
    line.end(second, "new")
    (ended,) = engine.poll(0)
    assert isinstance(ended, CallEnded) and ended.result == Returned(value="new")
    assert any(isinstance(order, Stop) for order in line.orders)


def test_a_silent_machine_is_lost_and_gets_a_new_agent(engine: ClockedEngine) -> None:
    engine.start("it", on("b"))
    engine.poll(0)
    old = engine.cluster.lines["b"]
    engine.cluster.clock.now_s += SILENCE_S - 1
    engine.cluster.lines["a"].tell()
    assert list(engine.poll(0)) == []
    engine.cluster.clock.now_s += 2
    (lost,) = engine.poll(0)
    assert lost == MachineLost(name="b", reason="it has not answered for 30 s")
    assert old.hung_up and "b" in engine.absent
    engine.cluster.clock.now_s += 2
    engine.poll(0)
    joined = [r.offer.resource.name for r in engine.poll(0) if isinstance(r, ResourceJoined)]
    assert joined == ["b/host", "b/cpu0"]
    old.tell(CallEnded(id="0", result=Returned(value=1), started_s=0, ended_s=1))
    assert list(engine.poll(0)) == []


def pass_time(engine: ClockedEngine, seconds: float) -> None:
    """Let time pass in which the machine of the driver tells that nothing happened."""
    for _ in range(int(seconds / 10)):
        engine.cluster.clock.now_s += 10
        for name in ("a", "b"):
            engine.cluster.lines[name].tell()
        engine.poll(0)
        engine.poll(0)


def test_an_agent_that_is_not_ready_is_waited_for_as_long_as_it_answers(engine: ClockedEngine) -> None:
    engine.cluster.names += ["busy", "dead"]
    engine.cluster.slow, engine.cluster.mute = {"busy", "dead"}, {"dead"}
    engine.cluster.inbox.put(LiveNodes(nodes=engine.cluster.nodes()))
    engine.poll(0)
    busy, dead = engine.cluster.lines["busy"], engine.cluster.lines["dead"]
    pass_time(engine, START_S + 20)
    assert dead.hung_up and not busy.hung_up
    busy.slow = False
    busy.ask_hello()
    engine.poll(0)
    assert "busy" in engine.facts


def test_an_agent_that_is_never_ready_is_given_up_after_a_quarter_of_an_hour(engine: ClockedEngine) -> None:
    engine.cluster.names.append("busy")
    engine.cluster.slow = {"busy"}
    engine.cluster.inbox.put(LiveNodes(nodes=engine.cluster.nodes()))
    engine.poll(0)
    pass_time(engine, READY_S + 10)
    assert engine.absent == {"busy": "its agent was not ready after 900 s"}


def test_a_machine_that_leaves_the_cluster_is_not_tried_again_until_it_is_back(engine: ClockedEngine) -> None:
    engine.cluster.names.remove("b")
    engine.cluster.inbox.put(LiveNodes(nodes=engine.cluster.nodes()))
    assert list(engine.poll(0)) == [MachineLost(name="b", reason="it left the cluster")]
    engine.cluster.inbox.put(LiveNodes(nodes=engine.cluster.nodes()))
    engine.poll(0)
    assert not engine.absent
    engine.cluster.names.append("b")
    engine.cluster.inbox.put(LiveNodes(nodes=engine.cluster.nodes()))
    engine.poll(0)
    assert engine.absent == {} and {o.resource.machine for o in engine.offers} == {"a", "b"}


def test_an_agent_that_keeps_breaking_is_tried_less_and_less_often(engine: ClockedEngine) -> None:
    engine.cluster.broken = {"b": "its disk is full"}
    engine.cluster.lines["b"].say(Gone(reason="its agent died"))
    engine.poll(0)
    tried: list[float] = []
    for _ in range(40):
        before = engine.cluster.lines["b"]
        engine.cluster.clock.now_s += 1
        engine.cluster.lines["a"].tell()
        engine.poll(0)
        engine.poll(0)
        if engine.cluster.lines["b"] is not before:
            tried.append(engine.cluster.clock.now_s - 100)
    assert [round(b - a) for a, b in pairwise(tried)] == [2, 4, 8, 16]


def test_an_agent_that_worked_longer_than_its_machine_rested_is_replaced_soon(engine: ClockedEngine) -> None:
    rested: list[float] = []
    for worked_s in (0.5, 0.5, 0.5, 20.0, 20.0):
        engine.cluster.clock.now_s += worked_s
        before = engine.cluster.lines["b"]
        before.say(Gone(reason="its agent died"))
        engine.poll(0)
        lost_s = engine.cluster.clock.now_s
        while engine.cluster.lines["b"] is before:
            engine.cluster.clock.now_s += 0.5
            engine.cluster.lines["a"].tell()
            engine.poll(0)
            engine.poll(0)
        rested.append(engine.cluster.clock.now_s - lost_s)
        engine.poll(0)
    assert rested == [1, 2, 4, 1, 1]


def test_a_call_on_a_machine_that_is_gone_is_lost(engine: ClockedEngine) -> None:
    engine.start("it", on("nowhere"))
    (ended,) = engine.poll(0)
    assert isinstance(ended, CallEnded) and isinstance(ended.result, Lost)


def built_on(engine: ClockedEngine, machine: str) -> Artifact:
    engine.start("build", on(machine, "source"))
    engine.poll(0)
    line = engine.cluster.lines[machine]
    line.end(line.started()[-1], Artifact(payload=Receipt("1.1", machine), build_s=1.0))
    (ended,) = engine.poll(0)
    assert isinstance(ended, CallEnded) and isinstance(ended.result, Returned)
    artifact: Artifact = ended.result.value
    return artifact


def test_what_was_built_goes_from_machine_to_machine_by_its_receipt(engine: ClockedEngine) -> None:
    artifact = built_on(engine, "a")
    engine.start("profile", on("b", artifact))
    engine.poll(0)
    (start,) = engine.cluster.lines["b"].started()
    assert isinstance(start.call.arguments[0].payload, Receipt)
    assert engine.cluster.lines["b"].holders == {"a": engine.cluster.lines["a"]}


def test_what_nobody_needs_any_more_is_dropped_where_it_was_built(engine: ClockedEngine) -> None:
    artifact = built_on(engine, "a")
    del artifact
    engine.start("next", on("a"))
    engine.poll(0)
    assert Drop(artifact="1.1") in engine.cluster.lines["a"].orders


def test_what_is_gone_with_its_machine_is_built_again_where_it_is_needed(engine: ClockedEngine) -> None:
    artifact = built_on(engine, "a")
    engine.start("profile", on("b", artifact))
    engine.poll(0)
    line = engine.cluster.lines["b"]
    line.tell(ArtifactMissing(id=line.started()[0].id, receipt=artifact.payload))  # type: ignore[arg-type]
    assert list(engine.poll(0)) == []
    again = line.started()[1]
    assert again.call.arguments == ("source",) and again.call.place == on("b").place
    line.end(again, Artifact(payload=b"built again"))
    assert list(engine.poll(0)) == []
    profile = line.started()[2]
    assert profile.call.arguments[0].payload == b"built again"
    line.end(profile, 0.5)
    (ended,) = engine.poll(0)
    assert isinstance(ended, CallEnded) and (ended.id, ended.result) == ("profile", Returned(value=0.5))


def test_what_cannot_be_built_again_ends_the_call_instead_of_repeating_it_for_ever(
    engine: ClockedEngine,
) -> None:
    artifact = built_on(engine, "a")
    engine.start("profile", on("b", artifact))
    engine.poll(0)
    line = engine.cluster.lines["b"]
    line.tell(ArtifactMissing(id=line.started()[0].id, receipt=artifact.payload))  # type: ignore[arg-type]
    engine.poll(0)
    line.end(line.started()[1], "no artifact")
    (ended,) = engine.poll(0)
    assert isinstance(ended, CallEnded) and isinstance(ended.result, Raised)


def test_a_file_that_had_to_go_on_a_machine_travels_there_again(
    engine: ClockedEngine, tmp_path: Path
) -> None:
    (tmp_path / "net.onnx").write_bytes(b"weights")
    reads = ReadFiles(folder=str(tmp_path), digests={"net.onnx": "d"})
    call = replace(on("b", str(tmp_path / "net.onnx")), reads=reads)
    line = engine.cluster.lines["b"]
    for told in ((), (FilesGone(digests=frozenset({"d"})),)):
        line.tell(*told)
        engine.poll(0)
        engine.start("it", call)
        engine.start("again", call)
        engine.poll(0)
    assert [type(order).__name__ for order in line.orders] == ["KeepFile", "Start", "Start"] * 2
