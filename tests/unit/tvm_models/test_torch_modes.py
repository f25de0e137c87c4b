"""Which ways of PyTorch a bundle is compared with, and what the comparison says of them."""

import sys
import threading
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tuneloom.errors import InputError
from tuneloom.model import TF32_TYPES, ModelRecipe, OwnRuntime, TensorInfo
from tuneloom.tuners.tvm.models.rivals import runtimes, torch_programs, turns
from tuneloom.tuners.tvm.models.rivals.runtimes import Comparable, competitors
from tuneloom.tuners.tvm.models.rivals.torch_programs import TorchMode, all_modes, compiled_modes, within
from tuneloom.tuners.tvm.models.rivals.turns import Beside, against_gpu_runtimes, opened_beside

IMAGE = TensorInfo(name="x", shape=(1, 3, 8, 8), dtype="float32")
WORDS = TensorInfo(name="words", shape=(1, 8), dtype="int64")
ONES = np.ones(4, np.float32)


class Pretended:
    """A model that gives its number, and takes so many seconds by its own clock."""

    def __init__(self, value: float = 1.0, error: Exception | None = None) -> None:
        self._value, self._error = value, error

    def run(self, _values: Sequence[Any]) -> list[Any]:
        if self._error is not None:
            raise self._error
        return [self._value * ONES]

    def timer(self, _values: Sequence[Any]) -> Callable[[], float]:
        return lambda: self._value


def test_images_are_compiled_in_both_memory_formats_on_a_gpu() -> None:
    assert [mode.name for mode in compiled_modes([IMAGE], "cuda")] == [
        "torch.compile (reduce-overhead)",
        "torch.compile (reduce-overhead, channels_last)",
    ]
    assert [mode.channels_last for mode in compiled_modes([WORDS], "cuda")] == [False]


def test_evaluate_tries_eager_execution_and_a_long_search_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_programs, "find_spec", lambda _name: None)
    names = [mode.name for mode in all_modes([WORDS], "cuda")]
    assert names == ["torch eager", "torch.compile (reduce-overhead)", "torch.compile (max-autotune)"]
    monkeypatch.setattr(torch_programs, "find_spec", lambda _name: object())
    assert [mode.name for mode in all_modes([WORDS], "cuda")] == [*names, "TensorRT"]


def test_on_a_cpu_it_is_eager_execution_and_the_usual_compiler() -> None:
    assert [mode.name for mode in all_modes([IMAGE], "cpu")] == ["torch eager", "torch.compile"]


def test_who_disabled_torch_compile_is_not_compared_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")
    assert compiled_modes([IMAGE], "cuda") == []
    assert all_modes([IMAGE], "cuda") == [TorchMode()]


def test_what_takes_too_long_is_stopped() -> None:
    with pytest.raises(TimeoutError, match="it was not ready after"), within(0.01):
        threading.Event().wait()
    with within(60.0):
        pass


def test_one_way_that_fails_leaves_the_others() -> None:
    error = RuntimeError("raised:\nno kernel\n\nSet TORCHDYNAMO_VERBOSE=1 for the stack trace")
    ways = {"good": lambda: Pretended(2.0), "bad": lambda: Pretended(error=error)}
    found = opened_beside(Pretended(2.0), [ONES], ways)
    assert isinstance(found["good"], Beside) and found["good"].difference == 0.0
    assert found["bad"] == "no kernel"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A model on a GPU of which torch.compile is faster in the second format; turns are not waited for."""
    monkeypatch.setattr(turns, "computes_on", lambda device: device == "cuda")
    monkeypatch.setattr(
        turns, "TorchProgram", lambda _model, mode, **_: Pretended(0.5 if mode.channels_last else 0.75)
    )
    monkeypatch.setattr(
        turns, "all_in_turn", lambda timers, _seconds: [[timer() for _ in range(3)] for timer in timers]
    )
    return SimpleNamespace(inputs=(IMAGE,), outputs=(), device="cuda")


def recipe(source: str = "net.pt2", dtype: str = "float32") -> ModelRecipe:
    return ModelRecipe(key="net", source=source, shapes={}, target="cuda", dtype=dtype)


def test_the_headline_is_against_the_fastest_that_torch_compile_makes(compiled: Any) -> None:
    found = against_gpu_runtimes(recipe(), compiled, Pretended(0.25), [ONES], 0.0)
    assert isinstance(found, OwnRuntime)
    assert found.name == "torch.compile (reduce-overhead, channels_last, TF32 off)"
    assert found.seconds == (0.5,) * 3 and found.tuned_s == (0.25,) * 3


@pytest.mark.parametrize("dtype", sorted(TF32_TYPES))
def test_tf32_is_on_where_the_model_was_converted_to_it(compiled: Any, dtype: str) -> None:
    found = against_gpu_runtimes(recipe(dtype=dtype), compiled, Pretended(0.25), [ONES], 0.0)
    assert isinstance(found, OwnRuntime) and "TF32 on" in found.name


def test_a_model_that_no_runtime_runs_on_a_gpu_is_not_compared(compiled: Any) -> None:
    assert against_gpu_runtimes(recipe("net.tflite"), compiled, Pretended(), [ONES], 0.0) == ""


def test_an_onnx_file_is_compared_with_the_fastest_of_onnx_runtimes_providers(
    compiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = {"ONNX Runtime (CUDA)": lambda: Pretended(0.5), "ONNX Runtime (TensorRT)": lambda: Pretended(0.75)}
    monkeypatch.setattr(turns, "competitors", lambda name, this: ways if this.device == "cuda" else {})
    found = against_gpu_runtimes(recipe("net.onnx"), compiled, Pretended(0.25), [ONES], 0.0)
    assert isinstance(found, OwnRuntime)
    assert found.name == "ONNX Runtime (CUDA, TF32 off)" and found.seconds == (0.5,) * 3
    half = against_gpu_runtimes(recipe("net.onnx", dtype="float16"), compiled, Pretended(), [ONES], 0.0)
    assert isinstance(half, OwnRuntime) and half.name == "ONNX Runtime (CUDA, in float32, TF32 off)"


def test_what_is_missing_to_compare_an_onnx_file_is_told_with_its_package(
    compiled: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "net.onnx").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    told = against_gpu_runtimes(recipe(str(tmp_path / "net.onnx")), compiled, Pretended(), [ONES], 0.0)
    assert told == "onnxruntime is not installed; pip install onnxruntime-gpu"


def test_a_pytorch_that_cannot_use_the_gpu_is_told(compiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "computes_on", lambda _device: False)
    told = against_gpu_runtimes(recipe(), compiled, Pretended(), [ONES], 0.0)
    assert told == "PyTorch can't use this GPU; install a PyTorch for it: https://pytorch.org"


def test_why_nothing_could_be_compiled_is_told(compiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "TorchProgram", lambda *_, **__: Pretended(error=RuntimeError("no Triton")))
    told = against_gpu_runtimes(recipe(), compiled, Pretended(), [ONES], 0.0)
    assert told.startswith("torch.compile (reduce-overhead) fails: no Triton") if isinstance(told, str) else 0


def test_a_pytorch_that_lacks_the_gpu_is_told_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "net.pt2").write_bytes(b"")
    this = Comparable(model=str(tmp_path / "net.pt2"), inputs=(IMAGE,), outputs=(), device="cuda")
    monkeypatch.setattr(runtimes, "computes_on", lambda device: device == "cpu")
    with pytest.raises(InputError, match="torch can't use this GPU; install a PyTorch for it"):
        competitors("torch", this)
    monkeypatch.setattr(runtimes, "computes_on", lambda _device: False)
    with pytest.raises(InputError, match="torch is not installed"):
        competitors("torch", this)


def test_an_onnx_runtime_without_its_gpu_provider_is_told_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "net.onnx").write_bytes(b"")
    there = ["CPUExecutionProvider"]
    monkeypatch.setitem(sys.modules, "onnxruntime", SimpleNamespace(get_available_providers=lambda: there))
    this = Comparable(model=str(tmp_path / "net.onnx"), inputs=(IMAGE,), outputs=(), device="cuda")
    with pytest.raises(InputError, match="pip install onnxruntime-gpu in its place"):
        competitors("onnxruntime", this)
    there += ["CUDAExecutionProvider", "TensorrtExecutionProvider"]
    assert list(competitors("onnxruntime", this)) == ["ONNX Runtime (CUDA)", "ONNX Runtime (TensorRT)"]
