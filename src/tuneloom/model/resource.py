"""What stages occupy: hosts and devices, and boards that are reached over the network."""

from dataclasses import dataclass

from tuneloom.errors import TargetError

LOCAL = "local"
"""The machine that a run has to itself, unless it is told of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The part of a machine that offers slots for select, build and update."""

    name: str
    slots: int
    machine: str = LOCAL

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise ValueError(f"host {self.name!r} needs at least 1 slot, got {self.slots}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Something to profile on, held by one stage at a time; `key` names its kind.

    A device made of a host's own cores names that host, which is on the same machine, in
    `lends_to`: while no profile wants it, one host stage may hold it instead.
    """

    name: str
    key: str
    lends_to: str | None = None
    machine: str = LOCAL


_LAST_PORT = 65535


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A board: where its server listens, the key that this was started with, what to build for it."""

    key: str
    host: str
    port: int
    target: str

    def __post_init__(self) -> None:
        if not self.host or not 0 < self.port <= _LAST_PORT:
            raise TargetError(f"{self.host}:{self.port} is not the address of a board; write it as host:port")
        if self.key.split() != [self.key]:
            raise TargetError(f"the key of a board is one word, got {self.key!r}")

    @classmethod
    def at(cls, address: str, key: str, target: str) -> "Board":
        """A board from its address as people write it, `host:port`; raises TargetError for anything else."""
        host, _, port = address.rpartition(":")
        return cls(key=key, host=host.strip("[]"), port=int(port) if port.isdecimal() else 0, target=target)

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def name(self) -> str:
        """The name of its device, different for every board."""
        return f"{self.key}@{self.address}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceGone:
    """What a call returns whose device is not there any more; that is no fault of the call."""

    reason: str
