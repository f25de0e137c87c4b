"""What a farm file says, as values."""

from dataclasses import dataclass, field
from pathlib import Path

from tuneloom.app.devices.entries import DeviceEntry

RAY = "ray"
THIS_MACHINE = "local"
ENGINES = (RAY, THIS_MACHINE)
AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry:
    """What is said of a machine that builds; without `slots` it has one for each core that is left.

    0 slots: nothing is built there, only measured.
    """

    node: str
    slots: int | None = None
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmFile:
    """A farm: its engine, and the machines and devices that were listed.

    Machines that are not listed are used as they are found. If no device is listed, every machine
    offers what it has; otherwise exactly the listed ones are used.
    """

    path: Path
    engine: str = RAY
    address: str | None = None
    hosts: tuple[HostEntry, ...] = ()
    devices: tuple[DeviceEntry, ...] = field(default=())

    def host(self, node: str) -> HostEntry:
        """What is said of a machine; an entry that says nothing if it is not listed."""
        return next((host for host in self.hosts if host.node == node), HostEntry(node=node))

    def devices_with(self, key: str) -> list[DeviceEntry]:
        """The listed devices that have a key."""
        return [device for device in self.devices if device.key == key]

    def target_of(self, key: str) -> str | None:
        """What to compile for a key; None where devices say nothing of it."""
        return next((device.target for device in self.devices_with(key) if device.target), None)
