"""The architecture of a CUDA target is that of the GPU which a process sees; the driver is faked."""

import pytest

from tuneloom.backends.cuda import assembling
from tuneloom.backends.cuda import backend as cuda
from tuneloom.backends.cuda.target import cuda_config, require_memory
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


def test_a_driver_that_is_too_old_is_told_with_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    old = InstalledGpu(uuid="GPU-x", name="T4", capability=(7, 5), driver="535.104", cuda=(12, 2))
    monkeypatch.setattr(Nvml, "gpus", lambda _self: [old])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    words = "the NVIDIA driver 535.104 supports CUDA 12.2, TVM needs 13.0; update the driver"
    with pytest.raises(TargetError, match=words.replace(".", r"\.")):
        cuda_config({"kind": "cuda"})


@pytest.mark.parametrize("arch", ["90", "compute_90", "sm90", "sm_", ""])
def test_what_is_no_architecture_is_told_with_an_example(arch: str) -> None:
    with pytest.raises(TargetError, match="is not an architecture of NVIDIA GPUs; write it like sm_90"):
        cuda_config({"kind": "cuda", "arch": arch})


def test_an_architecture_that_the_assembler_does_not_know_is_told_with_those_that_it_knows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(assembling, "assembled", lambda: frozenset(("sm_100", "sm_90", "sm_90a", "sm_70")))
    with pytest.raises(TargetError, match="does not know sm_999; it knows sm_70, sm_90, sm_90a, sm_100"):
        cuda_config({"kind": "cuda", "arch": "sm_999"})
    assert cuda_config({"kind": "cuda", "arch": "sm_70"})["arch"] == "sm_70"


def test_the_assembler_of_triton_says_what_it_knows() -> None:
    pytest.importorskip("triton")
    assert {"sm_80", "sm_90"} <= assembling.assembled()


def test_a_model_that_no_gpu_of_the_architecture_can_hold_is_told_with_what_it_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small = InstalledGpu(uuid="GPU-s", name="T4", capability=(7, 5), memory_mib=16 << 10)
    large = InstalledGpu(uuid="GPU-l", name="H200", capability=(9, 0), memory_mib=140 << 10)
    monkeypatch.setattr(Nvml, "gpus", lambda _self: [small, large])
    words = (
        r"needs at least 20\.0 GiB \(5\.0 for its weights, 15\.0 for what it computes\), "
        r"the GPU has 16\.0 GiB; use a smaller batch, a smaller type"
    )
    with pytest.raises(TargetError, match=words):
        require_memory(5 << 30, 15 << 30, "sm_75")
    require_memory(5 << 30, 10 << 30, "sm_75")
    require_memory(5 << 30, 15 << 30, "sm_90")
    require_memory(5 << 30, 15 << 30, "sm_80")  # there is none here to ask


def test_models_for_gpus_that_are_not_here_need_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "find_spec", lambda _name: None)
    with pytest.raises(TargetError, match=r"needs Triton; pip install 'tuneloom\[triton\]'"):
        cuda.BACKEND.require_builder()
