"""Where the state of a job lives: stages that share it run on one host."""

from dataclasses import replace

from tuneloom.model import Host
from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.records import Stage
from tuneloom.scheduling.stages import SlotDemand, StageRequest


class Homes:
    """The host of every home that a stage has started at.

    The first stage of a home that starts decides where it is, until that host is lost. While
    there is one host only, nothing has to be bound to it.
    """

    def __init__(self, floor: Floor) -> None:
        self._floor = floor
        self._hosts: dict[str, dict[str, str]] = {}

    def host_of(self, job: str, home: str) -> str | None:
        """The host where this home is, or None if it may still be anywhere."""
        homes = self._hosts.get(job)
        return homes.get(home) if homes is not None else None

    def at_home(self, request: StageRequest) -> StageRequest:
        """The request bound to the host of its home, as far as that is known."""
        needs = request.needs
        if not isinstance(needs, SlotDemand):
            return request
        host = self.host_of(request.job, request.home) if len(self._floor.hosts) > 1 else None
        return request if needs.host == host else replace(request, needs=replace(needs, host=host))

    def settle(self, stage: Stage) -> bool:
        """A stage with a home started; True if that decided where its home is."""
        request = stage.request
        if self.host_of(request.job, request.home) is not None:
            return False
        host = self._host_behind(stage)
        if host is None:
            return False
        self._hosts.setdefault(request.job, {})[request.home] = host
        return True

    def host_lost(self, host: str) -> list[tuple[str, str]]:
        """Forget the homes on a host; the answer is which they were: jobs and homes."""
        lost = [(job, home) for job, homes in self._hosts.items() for home, at in homes.items() if at == host]
        for job, home in lost:
            del self._hosts[job][home]
        return lost

    def all(self) -> list[tuple[str, str]]:
        """All homes that are somewhere: jobs and homes."""
        return [(job, home) for job, homes in self._hosts.items() for home in homes]

    def forget(self, job: str) -> None:
        """A job ended."""
        self._hosts.pop(job, None)

    def _host_behind(self, stage: Stage) -> str | None:
        """The host that a grant belongs to; a device belongs to the host of its machine, if that has one."""
        assert stage.grant is not None
        resource = self._floor.seats[stage.grant.resource].resource
        if isinstance(resource, Host):
            return resource.name
        if resource.lends_to in self._floor.hosts:
            return resource.lends_to
        return self._floor.host_of_machine(resource.machine)
