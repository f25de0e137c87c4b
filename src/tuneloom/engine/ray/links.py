"""What the driver knows of one machine: its agent, what it was told, and how its clock stands."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tuneloom.engine.ray.messages import AgentLine, Hello, Node, Order

_CLOCK_S = 30.0
_WORSE = 1.5
_LONGEST_PAUSE_S = 60.0


@dataclass(slots=True, eq=False)
class Link:
    """One agent on one machine; `hello` is None until it has answered."""

    node: Node
    line: AgentLine
    since_s: float
    heard_s: float
    hello: Hello | None = None
    tries: int = 0
    greeted_s: float | None = None
    files: set[str] = field(default_factory=set)
    orders: list[Order] = field(default_factory=list)
    holders: dict[str, AgentLine] = field(default_factory=dict)
    _number: int = 0
    _offset_s: float = 0.0
    _trip_s: float = float("inf")
    _asked_s: float | None = None

    @property
    def machine(self) -> str:
        return self.node.name

    def greeted(self, hello: Hello, now_s: float) -> None:
        """It is ready; its clock is not older than this, for the answer took some time."""
        self.hello, self.greeted_s = hello, now_s
        self.files |= hello.files
        self._offset_s, self._trip_s = now_s - hello.now_s, float("inf")
        if self._asked_s is not None and self._asked_s < 0:
            self._asked_s = None  # what was told while it started, and was busy, is not exact

    def worked_s(self, now_s: float) -> float:
        """How long it has been ready; 0 if it never was."""
        return now_s - self.greeted_s if self.greeted_s is not None else 0.0

    def flush(self) -> None:
        """Send the orders that wait."""
        if self.orders:
            orders, self.orders = self.orders, []
            holders, self.holders = self.holders, {}
            self.line.order(self._number, orders, holders)
            self._number += 1

    def ask_clock(self, now_s: float) -> None:
        """Compare clocks, unless that was done lately or is under way; also a sign of life."""
        due = self._asked_s is None or (self._asked_s < 0 and now_s + self._asked_s >= _CLOCK_S)
        if due:
            self._asked_s = now_s
            self.line.ask_clock()

    def clock_told(self, theirs_s: float, now_s: float) -> None:
        """Their clock was read between the question and now; the quicker the answer the better."""
        if self._asked_s is None or self._asked_s < 0:
            return
        trip_s, middle_s = now_s - self._asked_s, (now_s + self._asked_s) / 2
        if trip_s <= _WORSE * self._trip_s:
            self._offset_s, self._trip_s = middle_s - theirs_s, trip_s
        self._asked_s = -now_s

    def on_our_clock(self, theirs_s: float, least_s: float, now_s: float) -> float:
        """When something happened there: not before something else that we know of, and not after now."""
        ours_s = theirs_s + self._offset_s
        if ours_s < least_s:
            ours_s = least_s
        return ours_s if ours_s < now_s else now_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A machine without an agent, and when to try again."""

    node: Node
    tries: int
    again_s: float
    reason: str


def pause_s(tries: int) -> float:
    """How long a machine rests after so many agents that did not last; none before the first."""
    return min(_LONGEST_PAUSE_S, 2.0**tries) if tries >= 0 else 0.0


def facts_of(links: Mapping[str, Link]) -> dict[str, Mapping[str, object]]:
    """What machines told of themselves."""
    return {name: link.hello.facts for name, link in links.items() if link.hello is not None}
