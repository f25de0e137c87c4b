"""NVIDIA GPUs of a machine."""

from tuneloom.app.farm.entries import DeviceEntry
from tuneloom.app.farm.kinds.base import Ground, Sight
from tuneloom.engine.machine import Offer, count_gpus
from tuneloom.model import Device


class CudaKind:
    """One GPU, owned by one process for as long as that lives."""

    def offer(self, entry: DeviceEntry, ground: Ground) -> Offer:
        name = ground.named(f"{entry.key}{entry.index}")
        return Offer(
            resource=Device(name=name, key=entry.key, machine=ground.machine),
            resident=True,
            environment={"CUDA_VISIBLE_DEVICES": str(entry.index)},
        )

    def look(self, entry: DeviceEntry) -> Sight:
        gpus = count_gpus()
        if entry.index >= gpus:
            return Sight(trouble=f"the driver lists {gpus} GPUs")
        return Sight(facts={"device": f"GPU {entry.index} of {gpus}"})
