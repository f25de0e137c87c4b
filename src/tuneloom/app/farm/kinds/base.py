"""What a kind of device is to a farm: how it is offered to the engine, and how it is looked at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tuneloom.app.farm.entries import DeviceEntry
from tuneloom.engine.machine import Offer
from tuneloom.model import LOCAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """The machine that carries out the calls of a device, and how its cores are divided."""

    machine: str
    host_cores: frozenset[int]
    device_cores: frozenset[int]

    def named(self, name: str) -> str:
        """The name of one of its resources; those of several machines differ."""
        return name if self.machine == LOCAL else f"{self.machine}/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What a look at a device found: `trouble` says why it can't be used now, `facts` are for people.

    `disturbed_by` says who else uses it.
    """

    trouble: str = ""
    disturbed_by: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        return not self.trouble


class DeviceKind(Protocol):
    """Asked on the machine that carries out the calls of a device, never in the process of the run.

    `offer` names the device and what its workers find: cores, and variables in their environment
    that tell the tuner which device they hold. `look` may take seconds and is called again every
    few seconds, in a thread of its own: a device in trouble leaves, and joins when it is well again.
    """

    def offer(self, entry: DeviceEntry, ground: Ground) -> Offer:
        """The device as engines offer it."""

    def look(self, entry: DeviceEntry) -> Sight:
        """Whether it is there and can be used; never raises."""
