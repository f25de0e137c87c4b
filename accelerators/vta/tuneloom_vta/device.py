"""The simulated accelerator as a kind of device: its cycles are counted, so it needs no core for itself."""

from collections.abc import Sequence
from typing import ClassVar

from tuneloom.app.devices.base import DeviceKind, DeviceState, MachineCores
from tuneloom.app.devices.entries import DeviceEntry
from tuneloom.engine.machine import Offer
from tuneloom.model import Device
from tuneloom_vta.simulator.library import compiler

NAME = "vta"


class VtaKind(DeviceKind):
    """One simulated accelerator a machine; a farm file may list more with other `index`es."""

    target: ClassVar[str] = NAME
    fields: ClassVar[Sequence[str]] = ("index",)

    def found(self, cores: int) -> Sequence[DeviceEntry]:
        return (DeviceEntry(key=NAME, kind=NAME, index=0),)

    def called(self, entry: DeviceEntry) -> str:
        return f"VTA {entry.index} of {entry.where}"

    def offer(self, entry: DeviceEntry, machine: MachineCores) -> Offer:
        name = machine.named(f"{entry.key}{entry.index}")
        resource = Device(name=name, key=entry.key, machine=machine.name)
        return Offer(resource=resource, cores=machine.host_cores, target=self.target)

    def look(self, entry: DeviceEntry) -> DeviceState:
        if compiler() is None:
            return DeviceState(trouble="the VTA simulator needs a C compiler; install one, or set CC")
        return DeviceState(facts={"device": "VTA, simulated"})


KIND = VtaKind()
