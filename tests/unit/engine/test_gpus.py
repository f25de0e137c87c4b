"""GPUs are listed as processes would see them, and whoever else uses one is named; the driver is faked."""

import os

import pytest

from tuneloom.app.devices.describing import MachineOrder, describe
from tuneloom.app.reports.notes import disturbed_facts
from tuneloom.app.runs.executing.resources import ResourceList
from tuneloom.engine.gpus import Gpu, GpuUser, disturbance, is_own_process, users, visible_gpus
from tuneloom.engine.machine import Offer
from tuneloom.model import Device
from tuneloom.report import Fact

TWO = "GPU-aa, NVIDIA H200, 1200, 97\nGPU-bb, NVIDIA H200, 3, [N/A]\n"
APPS = "GPU-aa, 77, /usr/bin/python3, 1190\nGPU-bb, [N/A], [Not Found], [N/A]\n"
A = Gpu(uuid="GPU-aa", name="NVIDIA H200", used_mib=1200, busy_percent=97)
B = Gpu(uuid="GPU-bb", name="NVIDIA H200", used_mib=3)


def driver(*options: str) -> str:
    return TWO if options[0].startswith("--query-gpu") else APPS


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
def test_the_gpus_are_those_that_a_process_would_see(visible: dict[str, str], seen: tuple[Gpu, ...]) -> None:
    assert visible_gpus(driver, visible) == seen


def test_without_a_driver_there_are_no_gpus_and_no_users() -> None:
    assert visible_gpus(lambda *_: "", {}) == ()
    assert users(lambda *_: "") == ()


def test_who_else_uses_a_gpu_is_named_with_its_memory_and_how_busy_the_gpu_is() -> None:
    others = users(driver, lambda _pid: False)
    assert others == (GpuUser(uuid="GPU-aa", pid=77, program="python3", used_mib=1190),)
    assert disturbance(A, others) == "python3 (pid 77, 1190 MiB); the GPU is 97 % busy"
    assert disturbance(B, others) == ""


def test_our_own_processes_disturb_nobody() -> None:
    assert users(driver, lambda pid: pid == 77) == ()
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
