"""What this machine offers: cores to work on and devices to profile on."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from tuneloom.errors import TargetError
from tuneloom.model import Device, Host

HOST = "host"
CPU_KEY = "cpu"
CUDA_KEY = "cuda"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Hosts and devices, and which cores stand behind each of them.

    `residents` are devices that one process owns for as long as it lives: a GPU, whose
    context takes longer to make than most kernels run.
    """

    host: Host
    devices: tuple[Device, ...]
    cores: Mapping[str, frozenset[int]]
    residents: frozenset[str] = frozenset()

    @property
    def device_keys(self) -> list[str]:
        return sorted({device.key for device in self.devices})


def this_machine(*, device_cores: int = 1, key: str = CPU_KEY) -> Machine:
    """Divide this machine's cores: the last ones are the CPU device, the others the host.

    With a single core both share it. GPUs are devices of their own and take no cores.
    """
    every = sorted(os.sched_getaffinity(0))
    if device_cores < 1:
        raise TargetError(f"a device needs at least 1 core, got {device_cores}")
    if device_cores >= len(every) > 1:
        raise TargetError(
            f"a device of {device_cores} cores leaves none of {len(every)} for building; "
            f"give at most {len(every) - 1}"
        )
    device = frozenset(every[-device_cores:])
    host = frozenset(every) - device or device
    gpus = [Device(name=f"{CUDA_KEY}{n}", key=CUDA_KEY) for n in range(count_gpus())]
    own = Device(name=f"{key}0", key=key, lends_to=HOST if host != device else None)
    return Machine(
        host=Host(name=HOST, slots=len(host)),
        devices=(own, *gpus),
        cores={HOST: host, own.name: device},
        residents=frozenset(gpu.name for gpu in gpus),
    )


def count_gpus() -> int:
    """How many NVIDIA GPUs the driver lists; asked of the driver's own tool, so no GPU is touched."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return 0
    listed = subprocess.run([tool, "-L"], capture_output=True, text=True, check=False)
    return sum(line.startswith("GPU ") for line in listed.stdout.splitlines())
