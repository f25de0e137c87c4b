"""What the conductor tells of a run."""

from collections.abc import Sequence

from tuneloom.engine.machine import Offer
from tuneloom.scheduling.messages import Command, Event
from tuneloom.store import SpanRecord


class Listener:
    """What the conductor tells; override what matters."""

    def happened(self, event: Event, commands: Sequence[Command]) -> None:
        """An event went into the core, which answered with these commands."""

    def device_used(self, job: str, key: str, seconds: float) -> None:
        """A stage of a job held a device of this key for so long; not told of stages that borrowed one."""

    def ran(self, span: SpanRecord) -> None:
        """A stage came to its end; times are seconds since the conductor began."""

    def resource_joined(self, offer: Offer, at_s: float) -> None:
        """A resource can be used from now on."""

    def resource_left(self, name: str, reason: str, at_s: float) -> None:
        """A resource can't be used any more."""

    def resource_disturbed(self, name: str, by: str, at_s: float) -> None:
        """Others use a resource, too, from now on; nobody does any more if `by` is empty."""

    def resource_shared(self, name: str, by: str, at_s: float) -> None:
        """Another process measures on a resource in turn with this one; nobody does if `by` is empty."""

    def resource_waited_for(self, job: str, name: str, seconds: float) -> None:
        """A stage of a job got a resource after waiting so long for another process."""

    def commit(self) -> None:
        """Make durable what programs kept; nothing that follows from it has been started yet."""

    def job_ended(self, job: str, *, cancelled: bool) -> None:
        """A job holds nothing any more."""

    def job_refused(self, job: str, reason: str) -> None:
        """The core does not take a job."""

    def job_failed(self, job: str, error: Exception) -> None:
        """An error in a job's own code, or in keeping what it found, ended it; it holds nothing any more."""

    def beat(self, now_s: float) -> None:
        """At least four times a second, when nothing is half done."""
