"""What a farm file says, as values."""

from dataclasses import dataclass, field
from pathlib import Path

RAY = "ray"
THIS_MACHINE = "local"
ENGINES = (RAY, THIS_MACHINE)
AUTO = "auto"

CPU = "cpu"
CUDA = "cuda"
RPC = "rpc"
KINDS = (CPU, CUDA, RPC)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEntry:
    """What is said of a machine that builds; without `slots` it has one for each core that is left.

    0 slots: nothing is built there, only measured.
    """

    node: str
    slots: int | None = None
    line: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEntry:
    """A device: `cores` of a machine, the GPU `index` of a machine, or a board at `address`.

    `node` is the machine that has it; for a board, the machine that talks to it, or None for any.
    `target` is what to compile for where that is not the machine's own.
    """

    key: str
    kind: str
    node: str | None = None
    index: int = 0
    cores: int = 1
    address: str | None = None
    target: str | None = None
    line: int = 0

    def __str__(self) -> str:
        where = {CPU: f"the CPU of {self.node or 'this machine'}", RPC: f"the board at {self.address}"}
        return where.get(self.kind, f"GPU {self.index} of {self.node or 'this machine'}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FarmFile:
    """A farm: its engine, and the machines and devices that were listed.

    Machines that are not listed are used as they are found. If no device is listed, every machine
    offers its CPU and its GPUs; otherwise exactly the listed ones are used.
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

    def has_boards(self, key: str) -> bool:
        """Whether the devices with a key are boards."""
        return any(device.kind == RPC for device in self.devices_with(key))

    def target_of(self, key: str) -> str | None:
        """What to compile for a key; None where devices say nothing of it."""
        return next((device.target for device in self.devices_with(key) if device.target), None)
