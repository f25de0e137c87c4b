"""GPUs of NVIDIA as targets; asked of the driver, since build workers must not touch a GPU."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from tuneloom.backends.cuda.assembling import require_architecture
from tuneloom.backends.cuda.gpu import relatives_of
from tuneloom.backends.cuda.headers import point_to_headers
from tuneloom.compiler.target import TargetSpec, tvm_target, with_host
from tuneloom.errors import TargetError
from tuneloom.gpus import InstalledGpu, Nvml, visible_gpus

NEEDED_CUDA = (13, 0)
"""The CUDA that TVM's wheel is linked with."""
_EXAMPLE = '{"kind": "cuda", "arch": "sm_90"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaTarget(TargetSpec):
    """A GPU by its architecture."""

    backend: ClassVar[str] = "cuda"
    device: ClassVar[str] = "cuda"

    @property
    def arch(self) -> str:
        return str(self.config["arch"])

    @property
    def family(self) -> str:
        return self.arch

    @property
    def relatives(self) -> tuple[str, ...]:
        return relatives_of(self.arch)

    @property
    def chip(self) -> str:
        return f"{self.kind} ({self.arch})"

    def to_tvm(self) -> Any:
        point_to_headers()
        return TargetSpec.to_tvm(self)


def cuda_target(config: Mapping[str, Any]) -> CudaTarget:
    """A CUDA target with architecture and limits filled in.

    Raises TargetError when there is no GPU to ask and no architecture given.
    """
    full = with_host(cuda_config(dict(config)))
    tvm_target({name: value for name, value in full.items() if name != "host"}, str(dict(config)))
    return CudaTarget(kind=str(full["kind"]), config=full)


def cuda_config(config: dict[str, Any]) -> dict[str, Any]:
    """What TVM is told of a GPU."""
    arch = str(config["arch"]) if "arch" in config else _architecture()
    require_architecture(arch)
    limits = {
        "arch": arch,
        "max_threads_per_block": 1024,
        "max_shared_memory_per_block": 49152,
        "thread_warp_size": 32,
        "registers_per_block": 65536,
    }
    return {**limits, **config}


def _architecture() -> str:
    """That of the GPU which a process sees first."""
    gpus = visible_gpus()
    if not gpus:
        raise TargetError(f"no NVIDIA GPU found here; name its architecture: --target '{_EXAMPLE}'")
    require_driver(gpus[0])
    return gpus[0].arch


def require_memory(weight_bytes: int, value_bytes: int, arch: str) -> None:
    """Raise TargetError if none of this machine's GPUs of an architecture can hold weights and values.

    The driver is asked for all GPUs: a process that builds sees none of them.
    """
    largest_mib = max((gpu.memory_mib for gpu in Nvml().gpus() if gpu.arch == arch), default=0)
    whole, weights, values = (
        each / 2**30 for each in (weight_bytes + value_bytes, weight_bytes, value_bytes)
    )
    if largest_mib and whole > largest_mib / 1024:
        raise TargetError(
            f"the model needs at least {whole:.1f} GiB ({weights:.1f} for its weights, {values:.1f} for what "
            f"it computes), the GPU has {largest_mib / 1024:.1f} GiB; use a smaller batch, a smaller type "
            "(--dtype float16) or a larger GPU"
        )


def require_driver(gpu: InstalledGpu) -> None:
    """Raise TargetError if the driver of a GPU is too old for TVM's runtime; one that does not say may do."""
    if gpu.cuda is not None and gpu.cuda < NEEDED_CUDA:
        has, needs = (f"{major}.{minor}" for major, minor in (gpu.cuda, NEEDED_CUDA))
        raise TargetError(
            f"the NVIDIA driver {gpu.driver} supports CUDA {has}, TVM needs {needs}; update the driver"
        )
