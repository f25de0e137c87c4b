"""Every case on a GPU, against NumPy: several configurations of each, and cuBLASLt where it can."""

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.kernels.cases import (
    CASES,
    TF32_TOLERANCE,
    TOLERANCES,
    convolution,
    plain_product,
    product_with_gelu,
    recurrent,
)
from support.kernels.interpreted import difference
from support.kernels.launching import LoadedCode
from support.kernels.meanings import computed, random_inputs
from tuneloom.backends.cuda.code import DeviceCode
from tuneloom.backends.cuda.cublaslt.claims import cublas_claim
from tuneloom.backends.cuda.cublaslt.implementer import CublasImplementer
from tuneloom.backends.cuda.cudnn.claims import cudnn_claim
from tuneloom.backends.cuda.cudnn.implementer import CudnnImplementer
from tuneloom.backends.cuda.library_calls import WORKSPACE_BYTES, LibraryImplementer
from tuneloom.backends.cuda.triton.implementer import TritonImplementer, triton_claim
from tuneloom.backends.meaning import Meaning

pytestmark = [pytest.mark.integration, pytest.mark.gpu]
torch = pytest.importorskip("torch", reason="the extra torch is not installed")
pytest.importorskip("triton", reason="the extra triton is not installed")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU", allow_module_level=True)


def target() -> dict[str, Any]:
    major, minor = torch.cuda.get_device_capability()
    return {"kind": "cuda", "arch": f"sm_{major}{minor}"}


def on_gpu(arrays: list[Any], meaning: Meaning) -> list[Any]:
    return [
        torch.from_numpy(
            np.ascontiguousarray(each.astype(np.float32) if each.dtype.kind not in "iub" else each)
        )
        .to(getattr(torch, kind.dtype))
        .cuda()
        for each, kind in zip(arrays, meaning.inputs, strict=True)
    ]


def off(outputs: list[Any], right: list[Any]) -> float:
    arrays = [each.double().cpu().numpy() for each in outputs]
    return max(difference(*pair) for pair in zip(arrays, right, strict=True))


def allowed(meaning: Meaning) -> float:
    if any(step.attributes.get("precision") == "tf32" for step in meaning.steps):
        return TF32_TOLERANCE
    return max(TOLERANCES[meaning.type_of(each).dtype] for each in meaning.outputs)


@pytest.mark.parametrize("name", CASES)
def test_kernels_agree_with_numpy(name: str) -> None:
    meaning = CASES[name][1]()
    claim = triton_claim(meaning, target())
    assert claim is not None
    inputs = random_inputs(meaning)
    right, tensors = computed(meaning, inputs), on_gpu(inputs, meaning)
    for configuration in claim.space.guesses[:4]:
        code = TritonImplementer().build(claim, configuration)
        assert isinstance(code, DeviceCode), code
        loaded = LoadedCode(meaning, code)
        loaded.launch(tensors)
        torch.cuda.synchronize()
        assert off(loaded.outputs, right) <= allowed(meaning), configuration


@pytest.mark.parametrize("units", [8, 16, 64])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_recurrent_layers_of_several_blocks_agree_with_numpy(kind: str, units: int) -> None:
    meaning = recurrent(kind, 30, 3, 64, 32)
    claim = triton_claim(meaning, target())
    assert claim is not None
    inputs = [each / 8 if each.ndim == 3 else each for each in random_inputs(meaning)]
    inputs = [np.array([30, 0, 17], np.int32) if each.dtype == np.int32 else each for each in inputs]
    inputs = [each.astype(np.float32) if each.dtype == np.float64 else each for each in inputs]
    code = TritonImplementer().build(claim, {"units": units, "warps": 4})
    assert isinstance(code, DeviceCode), code
    loaded = LoadedCode(meaning, code)
    loaded.launch(on_gpu(inputs, meaning))
    torch.cuda.synchronize()
    assert off(loaded.outputs, computed(meaning, inputs)) <= allowed(meaning)


@pytest.mark.parametrize("meaning", [product_with_gelu(64, 128, 256), plain_product(48, 64, 32, "float32")])
def test_cublaslt_agrees_with_numpy(meaning: Meaning, tmp_path: Path) -> None:
    by_library(CublasImplementer(), cublas_claim(meaning, target()), meaning, tmp_path)


@pytest.mark.parametrize(
    "meaning",
    [
        convolution((2, 14, 14, 64), 128, 3, residual=True),
        convolution((1, 28, 28, 32), 64, 1, stride=2),
        convolution((1, 14, 14, 32), 32, 3, "float32"),
    ],
)
def test_cudnn_agrees_with_numpy(meaning: Meaning, tmp_path: Path) -> None:
    by_library(CudnnImplementer(), cudnn_claim(meaning, target()), meaning, tmp_path)


def by_library(implementer: LibraryImplementer, claim: Any, meaning: Meaning, tmp_path: Path) -> None:
    """See that the first algorithm of a library computes a kernel."""
    assert claim is not None
    code = implementer.build(claim, {"algorithm": 0}, "by_library")
    assert isinstance(code, bytes)
    (tmp_path / "it.o").write_bytes(code)
    subprocess.run(
        ["cc", "-shared", "-o", str(tmp_path / "it.so"), str(tmp_path / "it.o"), "-ldl"], check=True
    )
    function = ctypes.CDLL(str(tmp_path / "it.so")).by_library_on
    inputs = random_inputs(meaning)
    tensors, right = on_gpu(inputs, meaning), computed(meaning, inputs)
    result = meaning.type_of(meaning.outputs[0])
    out = torch.full(result.shape, float("nan"), dtype=getattr(torch, result.dtype), device="cuda")
    workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
    numbers = (*claim.factors, claim.epilogue.bias, claim.epilogue.residual)
    given = (*(None if each is None else tensors[each] for each in numbers), workspace, out)
    pointers = [ctypes.c_void_p(0 if each is None else each.data_ptr()) for each in given]
    assert function(ctypes.c_void_p(torch.cuda.current_stream().cuda_stream), *pointers) == 0
    torch.cuda.synchronize()
    assert off([out], right) <= allowed(meaning)
