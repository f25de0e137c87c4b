"""The simulated accelerator as a kind of device, with the core that computes what it can't."""

from collections.abc import Sequence
from typing import ClassVar

from tuneloom.app.devices.base import DeviceEntry, DeviceKind, DeviceState, MachineCores
from tuneloom.engine.machine import Offer
from tuneloom.engine.sharing.locks import core_lock
from tuneloom.model import Device
from tuneloom_vta.errors import CompilerError
from tuneloom_vta.simulator.library import compiler, library

NAME = "vta"


class VtaKind(DeviceKind):
    """One simulated accelerator a machine; a farm file may list more with other `index`es."""

    target: ClassVar[str] = NAME
    fields: ClassVar[Sequence[str]] = ("index",)

    def takes(self, target: str) -> bool:
        return target == NAME or f'"{NAME}"' in target

    def found(self, cores: int) -> Sequence[DeviceEntry]:
        return (DeviceEntry(key=NAME, kind=NAME, index=0),)

    def called(self, entry: DeviceEntry) -> str:
        return f"VTA {entry.index} of {entry.where}"

    def offer(self, entry: DeviceEntry, machine: MachineCores) -> Offer:
        name = machine.named(f"{entry.key}{entry.index}")
        resource = Device(name=name, key=entry.key, machine=machine.name)
        cores = machine.device_cores or machine.host_cores
        locks = (f"vta-{entry.index}", *map(core_lock, sorted(machine.device_cores)))
        return Offer(resource=resource, cores=cores, locks=locks, target=self.target)

    def look(self, entry: DeviceEntry) -> DeviceState:
        if compiler() is None:  # programs in models are compiled, too
            return DeviceState(trouble="the VTA simulator needs a C compiler; install one, or set CC")
        try:
            library()
        except CompilerError as error:
            return DeviceState(trouble=str(error))
        return DeviceState(facts={"device": "VTA, simulated"})


KIND = VtaKind()
