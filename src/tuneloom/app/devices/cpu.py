"""Cores of a machine as a device."""

import os
from collections.abc import Sequence

from tuneloom.app.devices.base import DeviceEntry, DeviceKind, DeviceState, MachineCores
from tuneloom.engine.machine import CPU_KEY, HOST, Offer
from tuneloom.engine.sharing.locks import core_lock
from tuneloom.model import Device


class CpuKind(DeviceKind):
    """Some cores of a machine; they are lent to its host while nobody measures."""

    target = CPU_KEY
    fields = ("cores",)

    def found(self, cores: int) -> Sequence[DeviceEntry]:
        return (DeviceEntry(key=CPU_KEY, kind=CPU_KEY, cores=cores),)

    def cores(self, entry: DeviceEntry) -> int:
        return entry.cores

    def called(self, entry: DeviceEntry) -> str:
        return f"the CPU of {entry.where}"

    def offer(self, entry: DeviceEntry, machine: MachineCores) -> Offer:
        lends = machine.host_cores and machine.host_cores != machine.device_cores
        device = Device(
            name=machine.named(f"{entry.key}0"),
            key=entry.key,
            lends_to=machine.named(HOST) if lends else None,
            machine=machine.name,
        )
        locks = tuple(map(core_lock, sorted(machine.device_cores)))
        return Offer(resource=device, cores=machine.device_cores, locks=locks, target=self.target)

    def look(self, entry: DeviceEntry) -> DeviceState:
        cores = len(os.sched_getaffinity(0))
        if entry.cores > cores:
            return DeviceState(trouble=f"it has {cores} cores, not {entry.cores}")
        return DeviceState(facts={"device": f"{entry.cores} of {cores} cores"})


KIND = CpuKind()
