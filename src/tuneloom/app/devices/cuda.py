"""NVIDIA GPUs of a machine."""

from collections.abc import Sequence

from tuneloom.app.devices.base import DeviceKind, Ground, Sight
from tuneloom.app.devices.entries import DeviceEntry
from tuneloom.engine.gpus import disturbance, users, visible_gpus
from tuneloom.engine.machine import Offer
from tuneloom.model import Device

_CUDA = "cuda"


class CudaKind(DeviceKind):
    """One GPU, owned by one process for as long as that lives; this process sees no other.

    GPUs are numbered as CUDA_VISIBLE_DEVICES numbers them where the machine's agent was started.
    """

    target = _CUDA
    fields = ("index",)

    def takes(self, target: str) -> bool:
        return _CUDA in target

    def found(self, cores: int) -> Sequence[DeviceEntry]:
        return tuple(DeviceEntry(key=_CUDA, kind=_CUDA, index=n) for n in range(len(visible_gpus())))

    def called(self, entry: DeviceEntry) -> str:
        return f"GPU {entry.index} of {entry.where}"

    def offer(self, entry: DeviceEntry, ground: Ground) -> Offer:
        gpus = visible_gpus()
        there = entry.index < len(gpus)
        name = ground.named(f"{entry.key}{entry.index}")
        return Offer(
            resource=Device(name=name, key=entry.key, machine=ground.machine),
            resident=True,
            environment=gpus[entry.index].environment if there else {},
            locks=(f"gpu-{gpus[entry.index].uuid}",) if there else (),
            target=self.target,
        )

    def look(self, entry: DeviceEntry) -> Sight:
        gpus = visible_gpus()
        if entry.index >= len(gpus):
            return Sight(trouble=f"there are {len(gpus)} GPUs, so none has the index {entry.index}")
        gpu = gpus[entry.index]
        by = disturbance(gpu, users())
        about = f"{gpu.name}, {gpu.used_mib} MiB used, {gpu.busy_percent} % busy"
        return Sight(facts={"device": f"{about}, used by {by}" if by else about}, disturbed_by=by)


KIND = CudaKind()
