"""A program of PyTorch as PyTorch runs it: eagerly or compiled, on the CPU or on a GPU."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from threading import current_thread, main_thread
from types import FrameType
from typing import Any

import numpy as np

from tuneloom.errors import in_short
from tuneloom.model import TF32_TYPES, TensorInfo
from tuneloom.tuners.tvm.models.compiling.running import Array

DISABLED = "TORCH_COMPILE_DISABLE"
"""PyTorch's own variable: with 1, torch.compile compiles nothing."""
_ADVICE = "Set TORCHDYNAMO_VERBOSE"
_HALVES = ("float16", "bfloat16")
HOST = "cpu"
"""What PyTorch calls the machine's own memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchMode:
    """A way to run a program; `compiled` is a mode of torch.compile, empty for eager execution."""

    compiled: str = ""
    channels_last: bool = False
    backend: str = "inductor"

    @property
    def name(self) -> str:
        if not self.compiled:
            return "torch eager"
        maker = "torch.compile" if self.backend == "inductor" else "TensorRT"
        how = [self.compiled] * (self.backend == "inductor" and self.compiled != "default")
        words = ", ".join([*how, *(["channels_last"] if self.channels_last else [])])
        return f"{maker} ({words})" if words else maker


EAGER = TorchMode()


def compiled_modes(inputs: Sequence[TensorInfo], device: str) -> list[TorchMode]:
    """The usual way to compile for a device; on a GPU, images in both memory formats."""
    if os.environ.get(DISABLED) == "1":
        return []
    if device == HOST:
        return [TorchMode(compiled="default")]
    images = any(len(info.shape) == 4 for info in inputs)
    return [
        TorchMode(compiled="reduce-overhead", channels_last=last)
        for last in ((False, True) if images else (False,))
    ]


def all_modes(inputs: Sequence[TensorInfo], device: str) -> list[TorchMode]:
    """Everything that is worth comparing with, the quickest to prepare first."""
    modes = [EAGER, *compiled_modes(inputs, device)]
    if device == HOST or len(modes) == 1:
        return modes
    modes.append(TorchMode(compiled="max-autotune"))
    if find_spec("torch_tensorrt") is not None:
        modes.append(TorchMode(compiled="default", backend="torch_tensorrt"))
    return modes


def computes_on(device: str) -> bool:
    """Whether PyTorch is installed, and can use such a device."""
    if find_spec("torch") is None:
        return False
    import torch

    kind = getattr(torch, device, None)
    return device == HOST or bool(kind is not None and kind.is_available())


class TorchProgram:
    """An exported program in PyTorch.

    `dtype` is what a float32 program was converted to: PyTorch casts products and convolutions in the same
    way. TF32 is used where the type has it.
    """

    def __init__(
        self, model: str, mode: TorchMode, *, device: str = HOST, threads: int = 1, dtype: str = "float32"
    ) -> None:
        import torch

        torch.set_num_threads(threads)
        if mode.backend != "inductor":
            __import__(mode.backend)  # registers it
        torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
        torch.backends.cudnn.allow_tf32 = dtype in TF32_TYPES
        self._torch, self._mode, self._device, self._dtype = torch, mode, device, dtype
        program = torch.export.load(model).module().to(device)
        if mode.channels_last:
            program = program.to(memory_format=torch.channels_last)
        self._program = program
        if mode.compiled:
            how = {"mode": mode.compiled} if mode.backend == "inductor" else {"backend": mode.backend}
            self._program = torch.compile(program, **how)

    def run(self, values: Sequence[Array]) -> list[Array]:
        """NumPy in, NumPy out, in the order of the model's interface."""
        found = self._call(self._tensors(values))
        fields = found if isinstance(found, (tuple, list)) else (found,)
        return [_array(field) for field in fields]

    def timer(self, values: Sequence[Array]) -> Callable[[], float]:
        """A function that runs the program once on values that stay on its device and returns the seconds."""
        tensors = self._tensors(values)
        wait = (lambda: None) if self._device == HOST else getattr(self._torch, self._device).synchronize

        def once() -> float:
            started = time.perf_counter()
            self._call(tensors)
            wait()
            return time.perf_counter() - started

        return once

    def _call(self, tensors: Sequence[Any]) -> Any:
        torch = self._torch
        half = getattr(torch, self._dtype) if self._dtype in _HALVES else None
        with torch.no_grad(), torch.autocast(self._device, dtype=half, enabled=half is not None):
            return self._program(*tensors)

    def _tensors(self, values: Sequence[Array]) -> list[Any]:
        tensors = [_tensor(value).to(self._device) for value in values]
        if not self._mode.channels_last:
            return tensors
        last = self._torch.channels_last
        return [each.to(memory_format=last) if each.dim() == 4 else each for each in tensors]


def _tensor(value: Array) -> Any:
    """A tensor with a copy of the values; NumPy has bfloat16 only by another package."""
    import torch

    if value.dtype.name == "bfloat16":
        return torch.from_numpy(value.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.array(value))


def _array(tensor: Any) -> Array:
    import torch

    there = tensor.float() if tensor.dtype is torch.bfloat16 else tensor
    found: Array = there.cpu().numpy()
    return found


def why_not(error: Exception) -> str:
    """The reason in an error, in one short line; PyTorch puts advice on debugging behind it."""
    return in_short(str(error).partition(_ADVICE)[0]) or type(error).__name__


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Raise TimeoutError if what is inside takes longer; only the main thread of a process can be stopped."""
    if current_thread() is not main_thread():
        yield
        return

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"it was not ready after {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
