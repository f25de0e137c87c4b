"""The engine of several machines: calls go to the agent of their machine, reports come back."""

import time
from collections.abc import Callable, Mapping, Sequence
from queue import Empty
from typing import Any, assert_never

from tuneloom.engine.api import (
    EngineReport,
    MachineLost,
    ResourceDisturbed,
    ResourceJoined,
    ResourceLeft,
    ResourceReport,
    ResourceShared,
)
from tuneloom.engine.calls import Call, CallBegan, CallEnded, CallWaits, Lost
from tuneloom.engine.machine import Offer
from tuneloom.engine.ray.links import Absence, Link, facts_of, pause_s
from tuneloom.engine.ray.messages import (
    AgentBroke,
    AgentLine,
    AgentReport,
    AgentReports,
    AgentSpec,
    ArtifactMissing,
    CallWrote,
    Cluster,
    FilesGone,
    FromAgent,
    Gone,
    Hello,
    LiveNodes,
    Node,
)
from tuneloom.engine.ray.sending import RemoteCalls
from tuneloom.errors import EngineError

PATIENCE_S = 5.0
"""How long an agent waits for something to tell before it says that nothing happened."""

SILENCE_S = 30.0
"""A machine that has said nothing for so long is lost."""

START_S = 180.0
"""An agent that has said nothing for so long since it was started is given up."""

READY_S = 900.0
"""An agent that is not ready after so long is given up, though it answers: a busy machine imports slowly."""

_GLANCE_S = 0.5

AgentSpecs = Callable[[Node], AgentSpec | None]
"""What the agent of a machine is for; None for a machine that is not used."""


class RayEngine:
    """Fulfils the protocol `Engine` on the machines of a cluster; used by one thread.

    Machines that join the cluster are used, those that leave it are lost. A machine whose agent
    dies, breaks or falls silent is lost, too, and gets a new agent, after a pause that grows
    until one has worked for longer than the pause before it.
    A call without a place is carried out on the machine of this process.
    """

    def __init__(self, cluster: Cluster, specs: AgentSpecs) -> None:
        self._cluster = cluster
        self._specs = specs
        self._links: dict[str, Link] = {}
        self._by_line: dict[AgentLine, Link] = {}
        self._looked_s = 0.0
        self._absent: dict[str, Absence] = {}
        self._offers: dict[str, Offer] = {}
        self._away: dict[str, str] = {}
        self._here = ""
        self._calls = RemoteCalls(self._links, cluster.put, self.now_s)
        self._reports: list[EngineReport] = []
        self._prepared = self.closed = False

    def now_s(self) -> float:
        return time.monotonic()

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What the machines that are ready offer now."""
        return tuple(self._offers.values())

    @property
    def away(self) -> Mapping[str, str]:
        """Devices of these machines that left, and why."""
        return dict(self._away)

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        """What machines that are ready told of themselves, by their names."""
        return facts_of(self._links)

    @property
    def absent(self) -> Mapping[str, str]:
        """Machines that are there but can't be used now, and why."""
        return {name: absence.reason for name, absence in self._absent.items()}

    def prepare(self) -> None:
        """Start agents on all machines and wait until they are ready; raises EngineError if none is.

        Those that take minutes are not waited for if others are ready: they join later.
        """
        if self._prepared:
            return
        self._prepared = True
        for node in self._cluster.nodes():
            self._begin(node)
        until_s = self.now_s() + START_S
        while any(link.hello is None for link in self._links.values()):
            if self.now_s() >= until_s and self.facts:
                break
            self._hear(_GLANCE_S)
        self._reports = [r for r in self._reports if not isinstance(r, ResourceJoined | MachineLost)]
        if not self._links:
            why = "; ".join(f"{name}: {reason}" for name, reason in self.absent.items()) or "there is none"
            raise EngineError(f"no machine of the farm can be used: {why}")

    def start(self, call_id: str, call: Call) -> None:
        self.prepare()
        machine = call.place.machine if call.place is not None else self._here
        link = self._links.get(machine)
        if link is None or link.hello is None:
            now_s = self.now_s()
            lost = Lost(reason=f"machine {machine!r} is not there")
            self._reports.append(CallEnded(id=call_id, result=lost, started_s=now_s, ended_s=now_s))
        else:
            self._reports += self._calls.start(link, call_id, call)

    def stop(self, call_id: str) -> None:
        self._calls.stop(call_id)
        self._reports = [r for r in self._reports if not (isinstance(r, CallEnded) and r.id == call_id)]

    def release(self, worker: str) -> None:
        self._calls.release(worker)

    def poll(self, timeout_s: float | None) -> Sequence[EngineReport]:
        self._flush()
        until_s = None if timeout_s is None else self.now_s() + timeout_s
        while not self._reports:
            left_s = _GLANCE_S if until_s is None else min(_GLANCE_S, until_s - self.now_s())
            self._hear(max(0.0, left_s))
            self._flush()
            if until_s is not None and self.now_s() >= until_s:
                break
        reports, self._reports = self._reports, []
        return reports

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        for link in self._links.values():
            link.line.hang_up(politely=True)
        self._links.clear()
        self._cluster.close()

    def _flush(self) -> None:
        for link in self._calls.take_unsent():
            link.flush()

    def _begin(self, node: Node, tries: int = 0) -> None:
        """Start an agent on a machine, if that is used at all."""
        spec = self._specs(node)
        self._absent.pop(node.name, None)
        if spec is None:
            return
        if node.here:
            self._here = node.name
        now_s = self.now_s()
        link = Link(node, self._cluster.agent(node, spec), now_s, now_s, tries=tries)
        self._links[node.name] = self._by_line[link.line] = link
        link.line.ask_hello()

    def _hear(self, timeout_s: float) -> None:
        """Take in what has arrived, waiting for the first; then look after machines that say nothing."""
        inbox = self._cluster.inbox
        try:
            message = inbox.get(timeout=timeout_s) if timeout_s > 0 else inbox.get_nowait()
            while True:
                self._open(message)
                message = inbox.get_nowait()
        except Empty:
            self._look_after()

    def _open(self, message: FromAgent | LiveNodes) -> None:
        if isinstance(message, LiveNodes):
            self._compare(message.nodes)
            return
        link = self._by_line.get(message.sender)
        if link is None:
            return  # an agent that was given up
        now_s = link.heard_s = self.now_s()
        match message.body:
            case AgentReports():
                link.line.ask_reports(PATIENCE_S)
                for report in message.body.reports:
                    self._told(link, report)
            case Hello():
                self._greeted(link, message.body)
            case float():
                link.clock_told(message.body, now_s)
            case Gone() | AgentBroke():
                self._lose(link, message.body.reason)
            case _:
                assert_never(message.body)

    def _greeted(self, link: Link, hello: Hello) -> None:
        link.greeted(hello, self.now_s())
        link.line.ask_reports(PATIENCE_S)
        link.ask_clock(self.now_s())
        for offer in hello.offers:
            self._note(ResourceJoined(offer=offer))

    def _told(self, link: Link, report: AgentReport) -> None:
        match report:
            case CallEnded():
                self._reports += self._calls.ended(link, report, {})
            case CallWaits() | CallBegan():
                self._reports += self._calls.noted(link, report)
            case CallWrote():
                self._reports += self._calls.ended(link, report.ended, report.files)
            case ArtifactMissing():
                self._reports += self._calls.missing(link, report)
            case FilesGone():
                link.files -= report.digests
            case AgentBroke():
                self._lose(link, report.reason)
            case MachineLost() | ResourceJoined() | ResourceLeft() | ResourceDisturbed() | ResourceShared():
                self._note(report)
            case _:
                assert_never(report)

    def _note(self, report: ResourceReport | MachineLost) -> None:
        """Know what is there, and report it."""
        if isinstance(report, ResourceJoined):
            self._offers[report.offer.resource.name] = report.offer
            self._away.pop(report.offer.resource.name, None)
        elif isinstance(report, ResourceLeft) and self._offers.pop(report.name, None) is not None:
            self._away[report.name] = report.reason
        self._reports.append(report)

    def _compare(self, nodes: Sequence[Node]) -> None:
        """Who has left the cluster, and who is new."""
        alive = {node.id for node in nodes}
        for link in [each for each in self._links.values() if each.node.id not in alive]:
            self._lose(link, "it left the cluster")
        self._absent = {name: each for name, each in self._absent.items() if each.node.id in alive}
        for node in nodes:
            if node.name not in self._links and node.name not in self._absent:
                self._begin(node)

    def _look_after(self) -> None:
        """Twice a second: compare clocks, give up machines that say nothing, try again those that were."""
        now_s = self.now_s()
        if now_s - self._looked_s < _GLANCE_S:
            return
        self._looked_s = now_s
        for link in list(self._links.values()):
            link.ask_clock(now_s)
            limit_s = START_S if link.hello is None else SILENCE_S
            if now_s - link.heard_s > limit_s:
                self._lose(link, f"it has not answered for {limit_s:g} s")
            elif link.hello is None and now_s - link.since_s > READY_S:
                self._lose(link, f"its agent was not ready after {READY_S:g} s")
        for absence in [each for each in self._absent.values() if each.again_s <= now_s]:
            self._begin(absence.node, absence.tries)

    def _lose(self, link: Link, reason: str) -> None:
        """A machine is gone with its calls; it is tried again unless it leaves the cluster."""
        if self._links.get(link.machine) is not link:
            return
        del self._links[link.machine], self._by_line[link.line]
        self._calls.lost(link)
        link.line.hang_up()
        tries = 0 if link.worked_s(self.now_s()) > pause_s(link.tries - 1) else link.tries
        self._absent[link.machine] = Absence(
            node=link.node, tries=tries + 1, again_s=self.now_s() + pause_s(tries), reason=reason
        )
        self._offers = {
            n: offer for n, offer in self._offers.items() if offer.resource.machine != link.machine
        }
        if link.hello is not None:
            self._note(MachineLost(name=link.machine, reason=reason))
