"""The architecture of a CUDA target is that of the GPU which a process sees; the driver is faked."""

import pytest

from tuneloom.backends.cuda.target import cuda_config
from tuneloom.errors import TargetError
from tuneloom.gpus import InstalledGpu, Nvml

OLD = InstalledGpu(uuid="GPU-old", name="T4", capability=(7, 5))
NEW = InstalledGpu(uuid="GPU-new", name="H200", capability=(9, 0))


def test_the_gpu_that_a_process_sees_first_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nvml, "gpus", lambda _self: [NEW, OLD])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert cuda_config({"kind": "cuda"})["arch"] == "sm_90"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-old,GPU-new")
    assert cuda_config({"kind": "cuda"})["arch"] == "sm_75"


def test_an_architecture_that_is_given_stays() -> None:
    assert cuda_config({"kind": "cuda", "arch": "sm_86"})["arch"] == "sm_86"


def test_without_a_gpu_the_architecture_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nvml, "gpus", lambda _self: [])
    with pytest.raises(TargetError, match="no NVIDIA GPU found here; name its architecture"):
        cuda_config({"kind": "cuda"})
