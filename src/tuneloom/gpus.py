"""The NVIDIA GPUs of this machine, their state and who uses them, asked of their driver: no GPU is touched.

Nothing here creates a CUDA context. Without NVML or a driver there are no GPUs.
"""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tuneloom.errors import TargetError

VISIBLE = "CUDA_VISIBLE_DEVICES"
_PATIENCE_S = 60.0
_MOST_ANCESTORS = 64
_MIB = 1 << 20
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledGpu:
    """A GPU as the driver describes it; numbers that it does not tell are 0.

    `cuda` is the newest CUDA that the `driver` supports; None if it does not say.
    """

    uuid: str
    name: str
    capability: tuple[int, int] = (0, 0)
    memory_mib: int = 0
    used_mib: int = 0
    busy_percent: int = 0
    driver: str = ""
    cuda: tuple[int, int] | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which a process sees this GPU alone."""
        return {VISIBLE: self.uuid}

    @property
    def arch(self) -> str:
        """Its architecture as compilers call it, such as `sm_90`."""
        major, minor = self.capability
        return f"sm_{major}{minor}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUser:
    """A process that computes on a GPU."""

    uuid: str
    pid: int
    program: str
    used_mib: int = 0

    def __str__(self) -> str:
        return f"{self.program} (pid {self.pid}, {self.used_mib} MiB)"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuState:
    """How a GPU stands at a moment; what the driver does not tell is None.

    `slowed_by` are the driver's reasons why clocks are lower than they could be, as a set of bits;
    `energy_j` is what it has used since the driver was loaded.
    """

    core_mhz: int | None = None
    most_core_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    slowed_by: int | None = None
    energy_j: float | None = None
    users: tuple[GpuUser, ...] = ()


class Driver(Protocol):
    """What is asked of a driver; raises TargetError if it does not answer."""

    def gpus(self) -> Sequence[InstalledGpu]:
        """All GPUs of the machine, in its order; none where there is no driver."""

    def users(self) -> Sequence[GpuUser]:
        """Every process that computes on one of them."""

    def state(self, uuid: str) -> GpuState:
        """How the GPU with this identifier stands."""


class Nvml:
    """NVIDIA's own library; each question opens it anew, since an open one does not see GPUs that come."""

    def gpus(self) -> Sequence[InstalledGpu]:
        return _asked(lambda nvml: [_gpu(nvml, handle) for handle in _handles(nvml)], [])

    def users(self) -> Sequence[GpuUser]:
        return _asked(lambda nvml: [user for handle in _handles(nvml) for user in _users(nvml, handle)], [])

    def state(self, uuid: str) -> GpuState:
        return _asked(lambda nvml: state_of(nvml, nvml.nvmlDeviceGetHandleByUUID(uuid)), GpuState())


def visible_gpus(
    driver: Driver | None = None, environment: Mapping[str, str] = os.environ
) -> tuple[InstalledGpu, ...]:
    """The GPUs that processes started here may use, in the order in which these number them.

    Raises TargetError if there is a driver that does not answer: that says nothing about GPUs.
    """
    gpus = (driver or Nvml()).gpus()
    wanted = environment.get(VISIBLE)
    if wanted is None:
        return tuple(gpus)
    found = []
    for word in wanted.split(","):
        gpu = _named(word.strip(), gpus)
        if gpu is None:  # the driver stops at the first one that it does not know, too
            break
        found.append(gpu)
    return tuple(found)


def users(driver: Driver | None = None, ours: Callable[[int], bool] | None = None) -> tuple[GpuUser, ...]:
    """Processes that compute on GPUs, without those that this process started."""
    is_ours = ours or is_own_process
    return tuple(user for user in (driver or Nvml()).users() if not is_ours(user.pid))


def disturbance(gpu: InstalledGpu, others: Sequence[GpuUser]) -> str:
    """Who else uses a GPU, in words; empty if nobody does."""
    found = [str(user) for user in others if user.uuid == gpu.uuid]
    return f"{', '.join(found)}; the GPU is {gpu.busy_percent} % busy" if found else ""


def is_own_process(pid: int) -> bool:
    """Whether a process is this one or descends from it."""
    for _ in range(_MOST_ANCESTORS):
        if pid == os.getpid():
            return True
        if pid <= 1:
            return False
        pid = _parent_of(pid)
    return False


def _parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _named(word: str, gpus: Sequence[InstalledGpu]) -> InstalledGpu | None:
    """The GPU that a word of CUDA_VISIBLE_DEVICES means: its number or the beginning of its identifier."""
    if word.isdecimal():
        return gpus[int(word)] if int(word) < len(gpus) else None
    return next((gpu for gpu in gpus if word and gpu.uuid.startswith(word)), None)


def _asked(question: Callable[[Any], T], nothing: T, patience_s: float = _PATIENCE_S) -> T:
    """What NVML answers, `nothing` without a driver; raises TargetError if it fails or takes a minute.

    A driver in trouble may hang, so a thread asks, which is left to itself then.
    """
    answers: list[T] = []
    errors: list[Exception] = []

    def ask() -> None:
        try:
            answers.append(_with_nvml(question, nothing))
        except Exception as error:  # whatever it is, the one who asked has to hear of it
            errors.append(error)

    thread = threading.Thread(target=ask, name="nvml", daemon=True)
    thread.start()
    thread.join(patience_s)
    if not answers:
        why = errors[0] if errors else f"it has not answered for {patience_s:g} s"
        raise TargetError(f"the NVIDIA driver can't be asked for its GPUs: {why}")
    return answers[0]


def _with_nvml(question: Callable[[Any], T], nothing: T) -> T:
    try:
        import pynvml
    except ImportError:
        return nothing
    try:
        pynvml.nvmlInit()
    except (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded):
        return nothing
    try:
        return question(pynvml)
    finally:
        pynvml.nvmlShutdown()


def kept_open(uuid: str) -> tuple[Any, Any] | None:
    """NVML, opened for as long as this process lives, and its handle of a GPU; None without a driver."""
    try:
        import pynvml
    except ImportError:
        return None
    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        return pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid)
    return None


def _handles(nvml: Any) -> list[Any]:
    return [nvml.nvmlDeviceGetHandleByIndex(number) for number in range(nvml.nvmlDeviceGetCount())]


def _told(nvml: Any, question: Callable[[], T], otherwise: T) -> T:
    """An answer, or something else where a GPU does not know it."""
    try:
        return question()
    except (nvml.NVMLError_NotSupported, nvml.NVMLError_NoPermission):
        return otherwise


def _gpu(nvml: Any, handle: Any) -> InstalledGpu:
    memory = _told(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle), None)
    busy = _told(nvml, lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu, 0)
    version = _told(nvml, lambda: int(nvml.nvmlSystemGetCudaDriverVersion_v2()), 0)
    return InstalledGpu(
        uuid=nvml.nvmlDeviceGetUUID(handle),
        name=nvml.nvmlDeviceGetName(handle),
        capability=tuple(nvml.nvmlDeviceGetCudaComputeCapability(handle)),
        memory_mib=memory.total // _MIB if memory else 0,
        used_mib=memory.used // _MIB if memory else 0,
        busy_percent=busy,
        driver=_told(nvml, lambda: str(nvml.nvmlSystemGetDriverVersion()), ""),
        cuda=(version // 1000, version % 1000 // 10) if version else None,
    )


def _users(nvml: Any, handle: Any) -> list[GpuUser]:
    uuid = nvml.nvmlDeviceGetUUID(handle)
    found: list[Any] = _told(nvml, lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle), [])
    return [
        GpuUser(
            uuid=uuid,
            pid=each.pid,
            program=_program(nvml, each.pid),
            used_mib=(each.usedGpuMemory or 0) // _MIB,
        )
        for each in found
    ]


def _program(nvml: Any, pid: int) -> str:
    with suppress(nvml.NVMLError):  # it may have ended meanwhile
        return str(nvml.nvmlSystemGetProcessName(pid)).rpartition("/")[2] or "a process"
    return "a process"


def state_of(nvml: Any, handle: Any) -> GpuState:
    """How a GPU stands, asked of an open NVML."""

    def told(function: str, *options: int) -> Any:
        return _told(nvml, lambda: getattr(nvml, function)(handle, *options), None)

    milliwatts = told("nvmlDeviceGetPowerUsage")
    millijoules = told("nvmlDeviceGetTotalEnergyConsumption")
    return GpuState(
        core_mhz=told("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
        most_core_mhz=told("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
        memory_mhz=told("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
        temperature_c=told("nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
        power_w=None if milliwatts is None else milliwatts / 1000,
        slowed_by=told("nvmlDeviceGetCurrentClocksEventReasons"),
        energy_j=None if millijoules is None else millijoules / 1000,
        users=tuple(_users(nvml, handle)),
    )
