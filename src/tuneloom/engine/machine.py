"""What a machine offers: cores to work on and devices to profile on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from tuneloom.errors import TargetError
from tuneloom.model import LOCAL, Device, Host

HOST = "host"
CPU_KEY = "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A resource with what the engine has to know to use it.

    `cores` stand behind it, if any do. A `resident` device is owned by one process for as
    long as that lives: a GPU, whose context takes longer to make than most kernels run.
    `environment` tells processes which device they hold: which GPU, which board. A device that
    is not part of its machine is reached `through` a function (`package.module:function`) that
    gets each call's function, its time limit and its arguments. Whoever uses it holds its `locks`, which
    name it for all processes of the machine. `target` names what to compile for
    on a device unless somebody says otherwise.
    """

    resource: Host | Device
    cores: frozenset[int] | None = None
    resident: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    through: str = ""
    locks: tuple[str, ...] = ()
    target: str = ""


class Resources(Protocol):
    """What a run has from its start: a machine, or a fleet of them."""

    @property
    def offers(self) -> tuple[Offer, ...]:
        """All resources."""

    @property
    def slots(self) -> int:
        """The slots of all hosts."""

    @property
    def device_keys(self) -> list[str]:
        """The keys that devices have."""

    def cores_of(self, key: str) -> int:
        """How many cores a device of this key is made of; none for one that has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine: its host, its devices, and what each of them needs, by its name, as `Offer` tells."""

    name: str = LOCAL
    host: Host
    devices: tuple[Device, ...]
    cores: Mapping[str, frozenset[int]] = field(default_factory=dict)
    residents: frozenset[str] = frozenset()
    environments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for resource in self.resources:
            if resource.machine != self.name:
                raise TargetError(
                    f"{resource.name!r} belongs to machine {resource.machine!r}, not to {self.name!r}"
                )

    @property
    def resources(self) -> tuple[Host | Device, ...]:
        """Its host first, then its devices."""
        return (self.host, *self.devices)

    @property
    def slots(self) -> int:
        return self.host.slots

    @property
    def device_keys(self) -> list[str]:
        return sorted({device.key for device in self.devices})

    def cores_of(self, key: str) -> int:
        return Fleet(offers=self.offers).cores_of(key)

    @property
    def offers(self) -> tuple[Offer, ...]:
        """Its resources as engines offer them."""
        return tuple(
            Offer(
                resource=resource,
                cores=self.cores.get(resource.name),
                resident=resource.name in self.residents,
                environment=self.environments.get(resource.name, {}),
            )
            for resource in self.resources
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The resources of several machines, as far as they are known."""

    offers: tuple[Offer, ...]

    @property
    def slots(self) -> int:
        return sum(each.resource.slots for each in self.offers if isinstance(each.resource, Host))

    @property
    def device_keys(self) -> list[str]:
        return sorted({each.resource.key for each in self.offers if isinstance(each.resource, Device)})

    def cores_of(self, key: str) -> int:
        own = [each for each in self.offers if isinstance(each.resource, Device) and each.resource.key == key]
        return max((len(each.cores or ()) for each in own), default=0)
