"""Streams that are open, and what they watch."""

from collections import Counter
from dataclasses import dataclass, field

from tuneloom.server.stores import StorePool
from tuneloom.server.streams.glances import EVERY_S, Glances, job_look, overview_look

_MANY = 100


@dataclass(slots=True)
class OpenStreams:
    """Made once for an application, for its event loop alone; streams end when it is `draining`."""

    stores: StorePool
    glances: Glances
    overviews: Glances
    draining: bool = False
    watched: "Counter[str]" = field(default_factory=Counter)

    @classmethod
    def of(cls, stores: StorePool) -> "OpenStreams":
        """None yet, of what these stores hold."""
        return cls(stores, Glances(job_look(stores)), Glances(overview_look(stores)))

    @property
    def count(self) -> int:
        """How many event streams are open."""
        return self.watched.total()

    @property
    def pause_s(self) -> float:
        """How long streams wait between events: longer where many are open, since tuning needs the cores."""
        return EVERY_S * max(1.0, self.count / _MANY)

    def watch(self, name: str) -> None:
        """A stream of a job or of an overview begins."""
        self.watched[name] += 1

    def unwatch(self, name: str) -> None:
        """A stream of a job or of an overview ends."""
        self.watched[name] -= 1
        if self.watched[name] <= 0:
            del self.watched[name]
            self.glances.forget(name)
            self.overviews.forget(name)
