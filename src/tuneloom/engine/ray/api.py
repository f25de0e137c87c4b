"""What the engine asks of a cluster; `cluster` is the one on Ray."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Protocol

from tuneloom.engine.ray.messages import AgentBroke, AgentReports, AgentSpec, Hello, Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine of the cluster; `here` for that of the driver.

    `label` is the name that people gave it; `name` is the same unless two have that name.
    """

    id: str
    name: str
    label: str
    here: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """An agent does not answer and never will."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FromAgent:
    """Something from an agent: its greeting, reports, its clock, or that it is gone."""

    sender: "AgentLine"
    body: Hello | AgentBroke | AgentReports | float | Gone


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveNodes:
    """The machines that are alive now."""

    nodes: tuple[Node, ...]


Inbox = SimpleQueue[FromAgent | LiveNodes]


class AgentLine(Protocol):
    """The line to one agent; what it asks for is answered by letters in the inbox."""

    def ask_hello(self) -> None:
        """Ask for its greeting."""

    def ask_reports(self, patience_s: float) -> None:
        """Ask what happens there; the answer comes when something did, or after so long."""

    def ask_clock(self) -> None:
        """Ask what time it is there."""

    def order(self, number: int, orders: Sequence[Order], holders: "Mapping[str, AgentLine]") -> None:
        """Send orders; `holders` are the agents that have cargo which they need."""

    def hang_up(self, *, politely: bool = False) -> None:
        """End the agent with all its workers; politely: let it end them itself."""


class Cluster(Protocol):
    """Machines that may come and go, and agents on them."""

    inbox: Inbox

    def nodes(self) -> tuple[Node, ...]:
        """The machines that are alive."""

    def agent(self, node: Node, spec: AgentSpec) -> AgentLine:
        """Start an agent on a machine; it may take a while until it answers."""

    def put(self, data: bytes) -> Any:
        """A file so that it can be sent to several agents without being copied for each."""

    def close(self) -> None:
        """Leave the cluster; end it if it was started for this."""
