"""CUDA C and Triton on a real GPU; skipped without one."""

import ctypes
from pathlib import Path

import numpy as np
import pytest

from tuneloom.kernel import Array, CudaBuilder, CudaRunner, Kernel, Number, Plan, Space, TritonKernel, tune
from tuneloom.model import Budget, FailureKind, MeasuringRules
from tuneloom.tuners.kernel.languages.driver import CudaError, driver

SOURCE = """
__global__ void twice(const float *x, float *y, int n)
{
    __shared__ float room[ROOM];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    room[threadIdx.x] = i < n ? x[n - 1 - i] : 0.0f;
    __syncthreads();
    if (n - 1 - i >= 0) y[n - 1 - i] = (2 + WRONG) * room[threadIdx.x];
}
"""
ARGUMENTS = (Array("float32", (4096,)), Array("float32", (4096,), "zeros", True), Number("int32", 4096))


def has_gpu() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1")
        driver()
    except (OSError, CudaError):
        return False
    return True


def right(values: list[np.ndarray]) -> list[np.ndarray]:  # type: ignore[type-arg]
    return [2 * values[0]]


@pytest.mark.gpu
def test_cuda_kernels_are_tuned_and_every_failure_is_counted() -> None:
    if not has_gpu():
        pytest.skip("no GPU")
    space = Space({"BLOCK": [64, 256, 2048], "WRONG": [0, 1], "ROOM": [1024, 1 << 20]})
    runner = CudaRunner(ARGUMENTS, ("4096 // BLOCK",), ("BLOCK",), right)
    kernel = Kernel("twice", space, CudaBuilder(SOURCE, "twice"), runner)
    result = tune(kernel, Plan(budget=Budget(trials=12), measuring=MeasuringRules(run_timeout_s=60)))
    assert result.best["WRONG"] == 0 and result.best["BLOCK"] in (64, 256)
    assert result.failures == {
        FailureKind.BUILD_ERROR: 6,
        FailureKind.RUN_ERROR: 2,
        FailureKind.WRONG_RESULT: 2,
    }


@pytest.mark.gpu
def test_nvrtc_reveals_registers_and_code_size() -> None:
    if not has_gpu():
        pytest.skip("no GPU")
    builder = CudaBuilder(SOURCE, "twice")
    features = builder({"BLOCK": 64, "WRONG": 0, "ROOM": 256}).features
    assert features["code_bytes"] > 0 and features["registers"] > 0
    assert features["shared_bytes"] >= 1024
    again = builder({"BLOCK": 64, "WRONG": 0, "ROOM": 256}).features
    assert again == features, "what NVRTC takes from its cache has no log"


TRITON = """
import torch
import triton
import triton.language as tl


@triton.jit
def twice(x, y, n, BLOCK: tl.constexpr, WRONG: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, (2 + WRONG) * tl.load(x + i, mask=i < n), mask=i < n)


def arguments():
    x = torch.arange(5000, device="cuda", dtype=torch.float32)
    return [x, torch.zeros_like(x), 5000]


def grid(configuration):
    return (triton.cdiv(5000, configuration["BLOCK"]),)


def reference(arguments):
    return 2 * arguments[0]
"""


@pytest.mark.gpu
def test_triton_kernels_build_run_and_are_checked(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    if not has_gpu():
        pytest.skip("no GPU")
    path = tmp_path / "twice.py"
    path.write_text(TRITON)
    kernel = TritonKernel(str(path), "twice", output=1)
    space = Space({"BLOCK": [100, 128, 256], "WRONG": [0, 1], "num_warps": [1, 4]})
    rules = MeasuringRules(build_timeout_s=120, run_timeout_s=120)
    result = tune(
        Kernel("twice", space, kernel.build, kernel.run), Plan(budget=Budget(trials=12), measuring=rules)
    )
    assert result.best["WRONG"] == 0
    assert result.failures == {FailureKind.BUILD_ERROR: 4, FailureKind.WRONG_RESULT: 4}


def test_without_a_driver_the_error_says_so() -> None:
    if has_gpu():
        pytest.skip("there is a GPU")
    with pytest.raises(CudaError, match="no NVIDIA driver"):
        driver()
