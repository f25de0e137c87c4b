"""GPUs are listed as processes would see them, and whoever else uses one is named; the driver is faked."""

import os
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tuneloom import gpus
from tuneloom.app.devices.base import MachineCores
from tuneloom.app.devices.cuda import CudaKind
from tuneloom.app.devices.describing import MachineOrder, describe
from tuneloom.app.reports.notes import disturbed_facts
from tuneloom.app.runs.executing.bookkeeping import ResourceList
from tuneloom.backends.cuda.watching import watch_first
from tuneloom.engine.machine import Offer
from tuneloom.errors import TargetError
from tuneloom.gpus import (
    GpuState,
    GpuUser,
    InstalledGpu,
    Nvml,
    disturbance,
    is_own_process,
    users,
    visible_gpus,
)
from tuneloom.model import Device
from tuneloom.report import Fact

A = InstalledGpu(uuid="GPU-aa", name="NVIDIA H200", capability=(9, 0), used_mib=1200, busy_percent=97)
B = InstalledGpu(uuid="GPU-bb", name="NVIDIA H200", used_mib=3)
USER = GpuUser(uuid="GPU-aa", pid=77, program="python3", used_mib=1190)


class TwoGpus:
    """A driver that knows two GPUs and who uses one."""

    def gpus(self) -> list[InstalledGpu]:
        return [A, B]

    def users(self) -> list[GpuUser]:
        return [USER]

    def state(self, uuid: str) -> GpuState:
        return GpuState()


@pytest.mark.parametrize(
    ("visible", "seen"),
    [
        ({}, (A, B)),
        ({"CUDA_VISIBLE_DEVICES": "1"}, (B,)),
        ({"CUDA_VISIBLE_DEVICES": "1,0"}, (B, A)),
        ({"CUDA_VISIBLE_DEVICES": "GPU-b"}, (B,)),
        ({"CUDA_VISIBLE_DEVICES": "0,7,1"}, (A,)),
        ({"CUDA_VISIBLE_DEVICES": ""}, ()),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, ()),
    ],
)
def test_the_gpus_are_those_that_a_process_would_see(
    visible: dict[str, str], seen: tuple[InstalledGpu, ...]
) -> None:
    assert visible_gpus(TwoGpus(), visible) == seen


class AbsentError(Exception):
    """There is no driver."""


class UnknownError(Exception):
    """A GPU does not know that."""


def pretended_nvml(trouble: Exception | None = None) -> Any:
    """NVIDIA's library as far as it is asked; `calls` has what it was opened and closed with."""
    calls: list[str] = []

    def raising(error: Exception) -> Any:
        raise error

    def clock(_handle: int, which: str) -> int:
        return 1980 if which == "sm" else 3201

    processes = [
        SimpleNamespace(pid=77, usedGpuMemory=1190 << 20),
        SimpleNamespace(pid=78, usedGpuMemory=None),
    ]
    return SimpleNamespace(
        calls=calls,
        NVMLError=Exception,
        NVMLError_LibraryNotFound=AbsentError,
        NVMLError_DriverNotLoaded=AbsentError,
        NVMLError_NotSupported=UnknownError,
        NVMLError_NoPermission=UnknownError,
        NVML_CLOCK_SM="sm",
        NVML_CLOCK_MEM="memory",
        NVML_TEMPERATURE_GPU=0,
        nvmlInit=lambda: raising(trouble) if trouble else calls.append("opened"),
        nvmlShutdown=lambda: calls.append("closed"),
        nvmlDeviceGetCount=lambda: 1,
        nvmlDeviceGetHandleByIndex=lambda number: number,
        nvmlDeviceGetHandleByUUID=["GPU-aa"].index,
        nvmlDeviceGetUUID=lambda _handle: "GPU-aa",
        nvmlDeviceGetName=lambda _handle: "NVIDIA H200",
        nvmlDeviceGetCudaComputeCapability=lambda _handle: (9, 0),
        nvmlDeviceGetMemoryInfo=lambda _handle: SimpleNamespace(total=140 << 30, used=1200 << 20),
        nvmlDeviceGetUtilizationRates=lambda _handle: SimpleNamespace(gpu=97),
        nvmlDeviceGetComputeRunningProcesses=lambda _handle: processes,
        nvmlSystemGetProcessName=lambda pid: "/usr/bin/python3" if pid == 77 else raising(UnknownError()),
        nvmlDeviceGetClockInfo=clock,
        nvmlDeviceGetMaxClockInfo=clock,
        nvmlDeviceGetTemperature=lambda _handle, _sensor: 41,
        nvmlSystemGetDriverVersion=lambda: "580.159.04",
        nvmlSystemGetCudaDriverVersion_v2=lambda: 13000,
        nvmlDeviceGetPowerUsage=lambda _handle: raising(UnknownError()),
        nvmlDeviceGetTotalEnergyConsumption=lambda _handle: 1_234_567,
        nvmlDeviceGetCurrentClocksEventReasons=lambda _handle: 4,
    )


def test_the_driver_is_asked_for_gpus_their_users_and_their_state(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = pretended_nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    (gpu,) = visible_gpus(environment={})
    assert (gpu.uuid, gpu.name, gpu.arch, gpu.memory_mib) == ("GPU-aa", "NVIDIA H200", "sm_90", 140 << 10)
    assert (gpu.used_mib, gpu.busy_percent) == (1200, 97)
    assert (gpu.driver, gpu.cuda) == ("580.159.04", (13, 0))
    ended = GpuUser(uuid="GPU-aa", pid=78, program="a process")
    assert users(ours=lambda _pid: False) == (USER, ended)
    state = Nvml().state("GPU-aa")
    assert (state.core_mhz, state.memory_mhz, state.temperature_c, state.slowed_by) == (1980, 3201, 41, 4)
    assert state.power_w is None, "the GPU does not tell"
    assert state.energy_j == 1234.567
    assert state.users == (USER, ended)
    assert nvml.calls == 3 * ["opened", "closed"]


def test_a_gpu_is_watched_by_an_nvml_that_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = pretended_nvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    watch = watch_first()
    assert watch is not None
    opened = list(nvml.calls)
    now = watch.now()
    assert nvml.calls == opened
    assert now.numbers == {
        "core_mhz": 1980, "memory_mhz": 3201, "temperature_c": 41, "slowed_by": 4, "other_processes": 2
    }  # fmt: skip
    assert (now.throttled, now.energy_j) == ("", 1234.567)


def test_without_a_driver_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", pretended_nvml(AbsentError()))
    assert watch_first() is None


def test_without_a_driver_there_are_no_gpus_and_no_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", pretended_nvml(AbsentError()))
    assert visible_gpus(environment={}) == users() == ()
    assert Nvml().state("GPU-aa") == GpuState()


def test_a_driver_that_does_not_answer_is_not_taken_for_one_without_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", pretended_nvml())
    kind, machine = CudaKind(), MachineCores(name="a", host_cores=frozenset(), device_cores=frozenset())
    (entry,) = kind.found(1)
    monkeypatch.setitem(sys.modules, "pynvml", pretended_nvml(OSError("GPU is lost")))
    with pytest.raises(TargetError, match="driver can't be asked for its GPUs: GPU is lost"):
        visible_gpus()
    assert kind.found(1) == (entry,)
    assert "GPU is lost" in kind.look(entry).trouble
    assert kind.offer(entry, machine).resource.name == "a/cuda0"


def test_a_driver_that_hangs_is_given_up_with_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", pretended_nvml())
    hangs = threading.Event()
    with pytest.raises(TargetError, match=r"it has not answered for 0\.01 s"):
        gpus._asked(lambda _nvml: hangs.wait(), False, 0.01)
    hangs.set()


def test_who_else_uses_a_gpu_is_named_with_its_memory_and_how_busy_the_gpu_is() -> None:
    others = users(TwoGpus(), lambda _pid: False)
    assert others == (USER,)
    assert disturbance(A, others) == "python3 (pid 77, 1190 MiB); the GPU is 97 % busy"
    assert disturbance(B, others) == ""


def test_our_own_processes_disturb_nobody() -> None:
    assert users(TwoGpus(), lambda pid: pid == 77) == ()
    assert is_own_process(os.getpid())
    assert not is_own_process(os.getppid()) and not is_own_process(1)


def test_every_gpu_of_this_machine_is_a_device_whose_process_sees_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tuneloom.app.devices.cuda.visible_gpus", lambda: (A, B))
    offers = {offer.resource.name: offer for offer in describe(MachineOrder()).offers}
    assert offers["cuda0"].environment == {"CUDA_VISIBLE_DEVICES": "GPU-aa"}
    assert offers["cuda1"].environment == {"CUDA_VISIBLE_DEVICES": "GPU-bb"}
    assert offers["cuda0"].resident and offers["cuda1"].resident
    assert not offers["host"].environment


def test_a_run_notes_who_disturbed_its_devices_and_its_report_says_so() -> None:
    listed = ResourceList()
    listed.joined(Offer(resource=Device(name="cuda1", key="cuda")), 0.0)
    listed.disturbed("cuda1", "python3 (pid 77, 9 MiB)", 12.3)
    listed.disturbed("cuda1", "", 20.0)
    value = "python3 (pid 77, 9 MiB) from 12 s, nobody from 20 s"
    assert disturbed_facts(listed.note()) == (Fact(name="cuda1: also used by", value=value),)
    assert disturbed_facts(None) == ()
