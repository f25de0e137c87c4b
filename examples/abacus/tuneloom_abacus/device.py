"""The accelerator as a kind of device: a machine has one, held by one stage at a time."""

from collections.abc import Sequence

from tuneloom.app.devices.base import DeviceEntry, DeviceKind, DeviceState, MachineCores
from tuneloom.engine.machine import Offer
from tuneloom.model import Device


class AbacusKind(DeviceKind):
    """One accelerator in each machine where this package is installed."""

    target = "abacus"

    def takes(self, target: str) -> bool:
        return "abacus" in target

    def found(self, cores: int) -> Sequence[DeviceEntry]:
        return (DeviceEntry(key="abacus", kind="abacus"),)

    def offer(self, entry: DeviceEntry, machine: MachineCores) -> Offer:
        device = Device(name=machine.named(f"{entry.key}{entry.index}"), key=entry.key, machine=machine.name)
        return Offer(resource=device, target=self.target, locks=("abacus",))

    def look(self, entry: DeviceEntry) -> DeviceState:
        return DeviceState(facts={"device": "an abacus"})


KIND = AbacusKind()
