"""What driver and agents tell each other, and what the engine asks of a cluster."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol

from tuneloom.engine.api import EngineReport
from tuneloom.engine.calls import Call, CallEnded
from tuneloom.engine.local import Watch
from tuneloom.engine.machine import Offer
from tuneloom.engine.ray.artifacts import Receipt
from tuneloom.model.pickling import quickly_pickled


class Survey(Protocol):
    """What a machine found when it looked at itself; made by the function that its spec names."""

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What it offers."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """What else the driver should know: versions, trouble with devices."""

    @property
    def files_in(self) -> Path:
        """The folder where files are kept that calls read."""

    @property
    def watch(self) -> Watch | None:
        """Notices devices that come and go."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """What an agent is for: its machine, how to look at it, and how its workers are prepared.

    `survey` is a function, as `package.module:function`, called there with `argument`; `engine` is
    what carries out calls, made like a LocalEngine.
    """

    machine: str
    survey: str
    argument: Any = None
    warm_up: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    engine: str = "tuneloom.engine.local:LocalEngine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """An agent is ready; `now_s` is its clock."""

    offers: tuple[Offer, ...]
    facts: Mapping[str, Any]
    now_s: float
    files: frozenset[str] = frozenset()


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Begin a call under an id that is never used again."""

    id: str
    call: Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """End a call."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """End a named worker."""

    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Keep an artifact no longer: nobody has its receipt any more."""

    artifact: str


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepFile:
    """Keep a file that the next call will read; `data` is what the cluster made of it, None if that got lost.

    `needed` are all files of that call: none of them may go to make room for another.
    """

    digest: str
    data: Any = field(repr=False)
    needed: frozenset[str] = frozenset()


Order = Start | Stop | Release | Drop | KeepFile


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactMissing:
    """A call did not begin, since some of what it needs is not there any more."""

    id: str
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentBroke:
    """An agent can't work any more, though its process lives."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWrote:
    """A call ended and left files in the folder that it writes to."""

    ended: CallEnded
    files: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesGone:
    """Files are not on a machine any more: others needed their room."""

    digests: frozenset[str]


AgentReport = EngineReport | ArtifactMissing | AgentBroke | CallWrote | FilesGone


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReports:
    """What happened on a machine; `now_s` is its clock when it was told."""

    now_s: float
    reports: Sequence[AgentReport]


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
        """Send orders; `holders` are the agents that have artifacts which they need."""

    def hang_up(self, *, politely: bool = False) -> None:
        """End the agent with all its workers; politely: let it end them itself."""


class Cluster(Protocol):
    """Machines that may come and go, and agents on them; `cluster` has the one on Ray."""

    inbox: Inbox

    def nodes(self) -> tuple[Node, ...]:
        """The machines that are alive."""

    def agent(self, node: Node, spec: AgentSpec) -> AgentLine:
        """Start an agent on a machine; it may take a while until it answers."""

    def put(self, data: bytes) -> Any:
        """A file so that it can be sent to several agents without being copied for each."""

    def close(self) -> None:
        """Leave the cluster; end it if it was started for this."""
