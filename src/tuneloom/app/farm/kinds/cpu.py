"""Cores of a machine as a device."""

import os

from tuneloom.app.farm.entries import DeviceEntry
from tuneloom.app.farm.kinds.base import Ground, Sight
from tuneloom.engine.machine import HOST, Offer
from tuneloom.model import Device


class CpuKind:
    """The last cores of a machine; they are lent to its host while nobody measures."""

    def offer(self, entry: DeviceEntry, ground: Ground) -> Offer:
        lends = ground.host_cores and ground.host_cores != ground.device_cores
        device = Device(
            name=ground.named(f"{entry.key}0"),
            key=entry.key,
            lends_to=ground.named(HOST) if lends else None,
            machine=ground.machine,
        )
        return Offer(resource=device, cores=ground.device_cores)

    def look(self, entry: DeviceEntry) -> Sight:
        cores = len(os.sched_getaffinity(0))
        if entry.cores > cores:
            return Sight(trouble=f"it has {cores} cores, not {entry.cores}")
        return Sight(facts={"device": f"{entry.cores} of {cores} cores"})
