"""What a machine offers: cores to work on and devices to profile on."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tuneloom.model import Device, Host

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """What a run has from its start: the resources of a machine, or of several, as far as they are known."""

    offers: tuple[Offer, ...]

    @property
    def slots(self) -> int:
        """The slots of all hosts."""
        return sum(each.resource.slots for each in self.offers if isinstance(each.resource, Host))

    @property
    def is_one_machine(self) -> bool:
        """Whether everything is on the same machine, as far as is known."""
        return len({each.resource.machine for each in self.offers}) == 1

    @property
    def device_keys(self) -> list[str]:
        """The keys that devices have."""
        return sorted({each.resource.key for each in self.offers if isinstance(each.resource, Device)})

    def cores_of(self, key: str) -> int:
        """How many cores a device of this key is made of; none for one that has its own."""
        own = [each for each in self.offers if isinstance(each.resource, Device) and each.resource.key == key]
        return max((len(each.cores or ()) for each in own), default=0)
