"""Where homes are: a new one goes to the host that has the fewest for its size and speed."""

from tuneloom.model import Host
from tuneloom.scheduling.floor import Floor
from tuneloom.scheduling.policies.load_aware.predictions import Speeds
from tuneloom.scheduling.records import Seat, Stage
from tuneloom.scheduling.stages import SlotDemand

Home = tuple[str, str]


class Residences:
    """Counts the homes of every host.

    All later stages of a home run where its first one did, so the hosts that just had room when
    searches began would be crowded for as long as these go on.
    """

    def __init__(self, floor: Floor, speeds: Speeds) -> None:
        self._floor = floor
        self._speeds = speeds
        self._at: dict[Home, str] = {}
        self._homes: dict[str, int] = {}

    def host_for(self, stage: Stage, chosen: Seat) -> Seat:
        """The host where a stage with a home should start: the chosen one unless it decides where that is."""
        needs = stage.request.needs
        if len(self._floor.hosts) < 2:
            return chosen
        if not isinstance(needs, SlotDemand) or needs.host is not None:
            return chosen
        roomy = [seat for seat in self._floor.hosts.values() if seat.free >= needs.slots]
        return min(roomy, key=lambda seat: (self._crowding(seat), seat is not chosen, seat.order))

    def started(self, stage: Stage) -> None:
        """A stage with a home started; if it is the first, its home is there now."""
        home = (stage.job.ticket.id, stage.request.home)
        if home in self._at or stage.grant is None:
            return
        host = self._host_of(stage.grant.resource)
        if host is not None:
            self._at[home] = host
            self._homes[host] = self._homes.get(host, 0) + 1

    def job_left(self, job: str) -> None:
        """The homes of a job are gone with it."""
        for home in [home for home in self._at if home[0] == job]:
            self._leave(home)

    def host_went(self, host: str) -> None:
        """The homes of a host are gone with it."""
        for home in [home for home, at in self._at.items() if at == host]:
            self._leave(home)

    def _leave(self, home: Home) -> None:
        self._homes[self._at.pop(home)] -= 1

    def _crowding(self, seat: Seat) -> float:
        """How long its homes will wait for each other, were there one more."""
        return (self._homes.get(seat.name, 0) + 1) * self._speeds.factor(seat.name) / seat.slots

    def _host_of(self, resource: str) -> str | None:
        seat = self._floor.seats[resource]
        if isinstance(seat.resource, Host):
            return resource
        return seat.resource.lends_to or self._floor.host_of_machine(seat.resource.machine)
