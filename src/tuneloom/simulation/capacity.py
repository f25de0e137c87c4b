"""How much of everything there is: what a lower bound needs to know of the resources."""

from collections.abc import Iterable
from dataclasses import dataclass

from tuneloom.model import Device, Host
from tuneloom.scheduling.stages import DeviceDemand
from tuneloom.simulation.steps import TimedStep


@dataclass(frozen=True, slots=True)
class Capacity:
    """Slots of all hosts, devices by key, and how many of these lend themselves to hosts."""

    slots: int
    devices: dict[str, int]
    lending: int
    lending_keys: frozenset[str]

    @classmethod
    def of(cls, resources: Iterable[Host | Device]) -> "Capacity":
        """The sum of these resources."""
        resources = list(resources)
        devices = [resource for resource in resources if isinstance(resource, Device)]
        keys = sorted({device.key for device in devices})
        lending_keys = frozenset(device.key for device in devices if device.lends_to is not None)
        return cls(
            slots=sum(resource.slots for resource in resources if isinstance(resource, Host)),
            devices={key: sum(device.key == key for device in devices) for key in keys},
            lending=sum(device.key in lending_keys for device in devices),
            lending_keys=lending_keys,
        )

    def at_once(self, step: TimedStep) -> int:
        """How many parts of a step could run at the same moment, at the most."""
        if isinstance(step.needs, DeviceDemand):
            width = self.devices.get(step.needs.key, 1)
        else:
            lent = self.lending if step.needs.lendable else 0
            width = (self.slots + lent) // step.needs.slots
        return max(1, min(width, len(step.parts)))
