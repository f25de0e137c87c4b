"""Other runtimes that run a model, to compare a bundle with what its user would run instead."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tuneloom.errors import InputError, ModelError, reason_of
from tuneloom.model import TF32_TYPES, TensorInfo
from tuneloom.tuners.tvm.models.compiling.foreign import entry_of
from tuneloom.tuners.tvm.models.compiling.running import Array, OpenModel
from tuneloom.tuners.tvm.models.rivals.torch_programs import EAGER, HOST, TorchProgram, all_modes, computes_on
from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.runtimes import PACKAGES, onnx_session, run_by

Run = Callable[[Sequence[Array]], list[Array]]
_ZOO = "zoo:"
RIVALS = {
    "onnxruntime": (".onnx",),
    "tflite": (".tflite",),
    "torch": (".pt2",),
    "openvino": (".onnx", ".tflite"),
}
"""Runtimes, and the files they run; the one that a kind of file belongs to comes first."""
BEST = "best"
"""Stands for the fastest of all that are installed."""
_MODULES = {"tflite": "ai_edge_litert"}
_GPU = "cuda"
_CUDA, _TENSORRT = "CUDAExecutionProvider", "TensorrtExecutionProvider"


def rival_of(model: str) -> str:
    """The runtime a model belongs to."""
    return rivals_of(model)[0]


def rivals_of(model: str) -> list[str]:
    """All runtimes that run such files, installed or not, the one it belongs to first."""
    suffix = ".onnx" if model.startswith(_ZOO) else Path(model).suffix
    return [name for name, endings in RIVALS.items() if suffix in endings]


def installed_rivals(model: str) -> list[str]:
    """Those of them that are installed; nothing is imported."""
    return [name for name in rivals_of(model) if find_spec(_MODULES.get(name, name)) is not None]


def open_rival(
    name: str, model: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], threads: int
) -> Run:
    """The model in a runtime with so many threads.

    Raises InputError when the runtime does not run such files, is not installed or refuses the model.
    """
    _require(name, model)
    if name not in installed_rivals(model):
        raise InputError(f"{name} is not installed; pip install {PACKAGES.get(name, name)}")
    try:
        if name == "torch":
            return TorchProgram(model, EAGER, threads=threads).run
        run: Run = run_by(name, _content(model), entry_of(inputs, outputs), threads)
        return run
    except Refused as error:
        raise ModelError(f"{model} can't be compared with the bundle: {error}") from error
    except Exception as error:
        raise ModelError(f"{name} refuses {model}: {reason_of(error)}") from error


def _require(name: str, model: str) -> None:
    known = rivals_of(model)
    if name not in known:
        raise InputError(f"{model} does not run in {name}; compare it with --against {known[0]}")
    if not model.startswith(_ZOO) and not Path(model).is_file():
        raise InputError(f"{model}, from which the bundle was made, is not there any more; put it back")


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparable:
    """A model that was tuned, as other runtimes have to run it for a comparison."""

    model: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    device: str = HOST
    threads: int = 1
    dtype: str = "float32"


def competitors(name: str, this: Comparable) -> Mapping[str, Callable[[], OpenModel]]:
    """All ways of a runtime to run a model on its device, by name; each is opened when it is called.

    Raises InputError when the runtime does not run such files, or can't use the device. Of the BEST, those
    that can't are left out; InputError then says that none is there.
    """
    if name == BEST:
        return _all_installed(this)
    _require(name, this.model)
    if name == "openvino" and this.device != HOST:
        raise InputError(f"openvino runs on CPUs only, and this bundle was built for {this.device}")
    if name == "torch":
        if not computes_on(this.device):
            missing = "is not installed" if not computes_on(HOST) else "can't use this GPU"
            raise InputError(f"torch {missing}; install a PyTorch for it: https://pytorch.org")
        settings: dict[str, Any] = {"device": this.device, "threads": this.threads, "dtype": this.dtype}
        modes = all_modes(this.inputs, this.device)
        return {mode.name: partial(TorchProgram, this.model, mode, **settings) for mode in modes}
    if name == "onnxruntime" and this.device != HOST:
        return _on_gpu(this)
    opened = partial(open_rival, name, this.model, this.inputs, this.outputs, this.threads)
    return {name: lambda: _OnHost(opened())}


def _all_installed(this: Comparable) -> Mapping[str, Callable[[], OpenModel]]:
    ways: dict[str, Callable[[], OpenModel]] = {}
    refusals: list[InputError] = []
    for name in installed_rivals(this.model):
        try:
            ways |= competitors(name, this)
        except InputError as error:
            refusals.append(error)
    if ways:
        return ways
    if refusals:
        raise refusals[0]
    packages = [PACKAGES.get(name, name) for name in rivals_of(this.model)]
    raise InputError(f"nothing to compare with is installed; pip install {' or '.join(packages)}")


class _OnHost:
    """A runtime that takes and gives NumPy arrays, as a model that can be timed."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def timer(self, values: Sequence[Array]) -> Callable[[], float]:
        def once() -> float:
            started = time.perf_counter()
            self.run(values)
            return time.perf_counter() - started

        return once


def _content(model: str) -> str | bytes:
    """A file, or what would be in one."""
    from tuneloom.tuners.tvm.zoo.listing import zoo_model

    if not model.startswith(_ZOO):
        return model
    content: bytes = zoo_model(model.removeprefix(_ZOO)).SerializeToString()
    return content


def _on_gpu(this: Comparable) -> Mapping[str, Callable[[], OpenModel]]:
    """ONNX Runtime by its providers for NVIDIA's GPUs; raises InputError if it was built without them."""
    try:
        import onnxruntime
    except ImportError as error:
        raise InputError("onnxruntime is not installed; pip install onnxruntime-gpu") from error
    there = set(onnxruntime.get_available_providers())
    if _CUDA not in there:
        raise InputError("this onnxruntime can't use a GPU; pip install onnxruntime-gpu in its place")
    # TF32 would be on otherwise.
    cuda = (_CUDA, {"use_tf32": int(this.dtype in TF32_TYPES)})
    ways: dict[str, list[Any]] = {"ONNX Runtime (CUDA)": [cuda]}
    if _TENSORRT in there:
        ways["ONNX Runtime (TensorRT)"] = [_TENSORRT, cuda]
    return {
        name: partial(_GpuSession, this.model, this.threads, providers) for name, providers in ways.items()
    }


class _GpuSession:
    """A session of ONNX Runtime whose inputs and outputs stay on the GPU."""

    def __init__(self, model: str, threads: int, providers: list[Any]) -> None:
        self._session = onnx_session(_content(model), threads, providers)
        first = providers[0] if isinstance(providers[0], str) else providers[0][0]
        if first not in self._session.get_providers():
            raise RuntimeError(f"ONNX Runtime could not load its {first}")

    def run(self, values: Sequence[Array]) -> list[Array]:
        binding = self._bound(values)
        self._session.run_with_iobinding(binding)
        return list(binding.copy_outputs_to_cpu())

    def timer(self, values: Sequence[Array]) -> Callable[[], float]:
        binding = self._bound(values)

        def once() -> float:
            started = time.perf_counter()
            self._session.run_with_iobinding(binding)  # returns when everything is computed
            return time.perf_counter() - started

        return once

    def _bound(self, values: Sequence[Array]) -> Any:
        import onnxruntime

        binding = self._session.io_binding()
        for info, value in zip(self._session.get_inputs(), values, strict=True):
            binding.bind_ortvalue_input(info.name, onnxruntime.OrtValue.ortvalue_from_numpy(value, _GPU, 0))
        for info in self._session.get_outputs():
            binding.bind_output(info.name, _GPU)
        return binding
