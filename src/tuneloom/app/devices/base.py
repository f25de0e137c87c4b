"""What a kind of device is: which fields describe one, how it is offered to the engine and looked at."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tuneloom.engine.machine import Offer
from tuneloom.model import LOCAL


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEntry:
    """A device of some kind: `cores` of a machine, the one with an `index`, or a board at an `address`.

    `node` is the machine that has it; for a device that is no part of a machine, the machine that
    talks to it, or None for any. `target` is what to compile for where that is not what its kind says.
    `options` are the fields that only its own kind knows.
    """

    key: str
    kind: str
    node: str | None = None
    index: int = 0
    cores: int = 1
    address: str | None = None
    target: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0

    @property
    def where(self) -> str:
        """The machine that has it, in words."""
        return self.node or "this machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCores:
    """The machine that carries out the calls of a device, and how its cores are divided."""

    name: str
    host_cores: frozenset[int]
    device_cores: frozenset[int]

    def named(self, name: str) -> str:
        """The name of one of its resources; those of several machines differ."""
        return name if self.name == LOCAL else f"{self.name}/{name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceState:
    """What a look at a device found: `trouble` says why it can't be used now, `facts` are for people.

    `disturbed_by` says who else uses it; what follows a semicolon there may change at any time.
    """

    trouble: str = ""
    disturbed_by: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        return not self.trouble


class DeviceKind(ABC):
    """One kind of device, registered by an entry point of the group `tuneloom.devices` under its name.

    `offer` and `look` are called on the machine that carries out the calls of a device, never in the
    process of the run on another one. `offer` names the device and what its workers find: cores, and
    variables in their environment that tell the tuner which device they hold, and names for the locks
    that keep other processes of the machine off it meanwhile, the same in every process. `look` may take
    seconds and is called again every few seconds, in a thread of its own: a device in trouble leaves, and
    joins when it is well again.
    """

    target: ClassVar[str] = "cpu"
    """What to compile for its devices unless a job or a farm file says otherwise: the name of a backend."""
    fields: ClassVar[Sequence[str]] = ()
    """What a farm file may say of a device beside `key`, `kind`, `node` and `target`; `cores`, `index` and
    `address` are attributes of its entry, any other field is text or a number among its `options`."""
    needed: ClassVar[Sequence[str]] = ()
    """The fields that it must say."""
    in_machine: ClassVar[bool] = True
    """Whether a device is part of a machine; one that is not is reached from whichever machine it names."""
    only_runtime: ClassVar[bool] = False
    """Whether TVM's runtime is all that runs beside the device, so that no other runtime can be compared."""

    def takes(self, target: str) -> bool:
        """Whether a job with this target, as the user wrote it, is meant for such devices."""
        return target == self.target

    def found(self, cores: int) -> Sequence[DeviceEntry]:
        """The devices that this machine has if no farm file lists any; a CPU device gets so many cores."""
        return ()

    def cores(self, entry: DeviceEntry) -> int:
        """How many cores of its machine a device is made of."""
        return 0

    def called(self, entry: DeviceEntry) -> str:
        """The device in words; two entries with the same words are the same device listed twice."""
        return f"{entry.kind} {entry.index} of {entry.where}"

    @abstractmethod
    def offer(self, entry: DeviceEntry, machine: MachineCores) -> Offer:
        """The device as engines offer it, also one that can't be used now; never raises."""

    @abstractmethod
    def look(self, entry: DeviceEntry) -> DeviceState:
        """Whether it is there and can be used; never raises, and is called from several threads."""
