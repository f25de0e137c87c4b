"""NVIDIA GPUs of a machine."""

from tuneloom.app.farm.entries import DeviceEntry
from tuneloom.app.farm.kinds.base import Ground, Sight
from tuneloom.engine.gpus import disturbance, users, visible_gpus
from tuneloom.engine.machine import Offer
from tuneloom.model import Device


class CudaKind:
    """One GPU, owned by one process for as long as that lives; this process sees no other.

    GPUs are numbered as CUDA_VISIBLE_DEVICES numbers them where the machine's agent was started.
    """

    def offer(self, entry: DeviceEntry, ground: Ground) -> Offer:
        gpus = visible_gpus()
        there = entry.index < len(gpus)
        return Offer(
            resource=Device(
                name=ground.named(f"{entry.key}{entry.index}"), key=entry.key, machine=ground.machine
            ),
            resident=True,
            environment=gpus[entry.index].environment if there else {},
        )

    def look(self, entry: DeviceEntry) -> Sight:
        gpus = visible_gpus()
        if entry.index >= len(gpus):
            return Sight(trouble=f"there are {len(gpus)} GPUs, so none has the index {entry.index}")
        gpu = gpus[entry.index]
        by = disturbance(gpu, users())
        about = f"{gpu.name}, {gpu.used_mib} MiB used, {gpu.busy_percent} % busy"
        return Sight(facts={"device": f"{about}, used by {by}" if by else about}, disturbed_by=by)
