"""NVIDIA GPUs of a machine."""

import logging
from collections.abc import Sequence
from contextlib import suppress

from tuneloom.app.devices.base import DeviceEntry, DeviceKind, DeviceState, MachineCores
from tuneloom.engine.machine import Offer
from tuneloom.errors import TargetError
from tuneloom.gpus import disturbance, users, visible_gpus
from tuneloom.model import Device

_CUDA = "cuda"
_LOG = logging.getLogger("tuneloom.devices")


class CudaKind(DeviceKind):
    """One GPU, owned by one process for as long as that lives; this process sees no other.

    GPUs are numbered as CUDA_VISIBLE_DEVICES numbers them where the machine's agent was started.
    """

    target = _CUDA
    fields = ("index",)

    def takes(self, target: str) -> bool:
        return _CUDA in target

    def __init__(self) -> None:
        self._found: Sequence[DeviceEntry] = ()

    def found(self, cores: int) -> Sequence[DeviceEntry]:
        """The GPUs that the driver lists; those that it listed last while it does not answer."""
        try:
            count = len(visible_gpus())
        except TargetError as error:
            _LOG.warning("%s", error)
        else:
            self._found = tuple(DeviceEntry(key=_CUDA, kind=_CUDA, index=n) for n in range(count))
        return self._found

    def called(self, entry: DeviceEntry) -> str:
        return f"GPU {entry.index} of {entry.where}"

    def offer(self, entry: DeviceEntry, machine: MachineCores) -> Offer:
        gpu = None
        with suppress(TargetError):
            gpu = dict(enumerate(visible_gpus())).get(entry.index)
        name = machine.named(f"{entry.key}{entry.index}")
        return Offer(
            resource=Device(name=name, key=entry.key, machine=machine.name),
            resident=True,
            environment={} if gpu is None else gpu.environment,
            locks=() if gpu is None else (f"gpu-{gpu.uuid}",),
            target=self.target,
        )

    def look(self, entry: DeviceEntry) -> DeviceState:
        try:
            gpus, others = visible_gpus(), users()
        except TargetError as error:
            return DeviceState(trouble=str(error))
        if entry.index >= len(gpus):
            return DeviceState(trouble=f"there are {len(gpus)} GPUs, so none has the index {entry.index}")
        gpu = gpus[entry.index]
        by = disturbance(gpu, others)
        about = f"{gpu.name}, {gpu.used_mib} MiB used, {gpu.busy_percent} % busy"
        return DeviceState(facts={"device": f"{about}, used by {by}" if by else about}, disturbed_by=by)


KIND = CudaKind()
