"""Tensors that a program reads and writes: those of a caller where they are, or ones that are kept."""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.weights import CPU


def is_tensor(value: Any) -> bool:
    """Whether a value is a tensor of some library, not of NumPy."""
    return hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic))


def borrowed(value: Any, info: dict[str, Any], device: Any) -> Any:
    """The tensor of a caller as one of TVM's in the same memory; refused if code can't read it there."""
    import tvm

    if not is_tensor(value):
        return tvm.runtime.tensor(np.ascontiguousarray(value), device)
    place, wanted = tuple(map(int, value.__dlpack_device__())), (device.dlpack_device_type(), device.index)
    if place != tuple(map(int, wanted)):
        raise Refused(f"{info['name']} is not on {device}, where the model runs; move it there")
    try:
        tensor = tvm.runtime.from_dlpack(value)
    except (RuntimeError, ValueError, TypeError, BufferError) as error:
        why = str(error).strip().splitlines()[-1]
        raise Refused(f"{info['name']} can't be used where it is ({why}); give a contiguous copy") from error
    if list(tensor.shape) != info["shape"] or str(tensor.dtype) != info["dtype"]:
        got = f"{tensor.dtype} {tuple(tensor.shape)}"
        raise Refused(f"{info['name']} must be {info['dtype']} {tuple(info['shape'])}, got {got}")
    return tensor


def queued_on(device: Any, values: Sequence[Any], stream: int | None) -> Any:
    """Where work of a GPU goes meanwhile: to a stream of the caller; on a CPU there is none."""
    import tvm_ffi

    torch = sys.modules.get("torch")
    if int(device.dlpack_device_type()) == CPU:
        return nullcontext()
    if stream is None and torch is not None and any(isinstance(value, torch.Tensor) for value in values):
        stream = int(torch.cuda.current_stream(device.index).cuda_stream)
    return nullcontext() if stream is None else tvm_ffi.use_raw_stream(device, stream)


def as_given(value: Any, tensor: Any) -> Any:
    """A tensor of TVM's as one of PyTorch's, if the caller's was."""
    torch = sys.modules.get("torch")
    return torch.from_dlpack(tensor) if torch is not None and isinstance(value, torch.Tensor) else tensor


class InputTensors:
    """Tensors that a model reads its inputs from, on a CPU kept from run to run.

    New ones in every run would cost more than a small model takes: memory that is mapped, and a page fault
    for each 4 KiB of it. Used by one thread.
    """

    def __init__(self, tensor: Any, device: Any) -> None:
        self._tensor, self._device = tensor, device
        self._tensors: list[Any] = []
        self._views: list[Any] = []

    def holding(self, values: Sequence[Any]) -> list[Any]:
        """Tensors with these values; good until the next call."""
        if not self._shareable(values):
            return [self._tensor(value, self._device) for value in values]
        if not self._fit(values):
            self._tensors = [self._tensor(value, self._device) for value in values]
            self._views = [np.from_dlpack(tensor) for tensor in self._tensors]
        for view, value in zip(self._views, values, strict=True):
            np.copyto(view, value, casting="no")
        return self._tensors

    def _shareable(self, values: Sequence[Any]) -> bool:
        """Whether NumPy sees the memory: on a CPU, of truth values and numbers that both know."""
        kinds = all(isinstance(value, np.ndarray) and value.dtype.kind in "biuf" for value in values)
        return kinds and int(self._device.dlpack_device_type()) == CPU

    def _fit(self, values: Sequence[Any]) -> bool:
        return len(values) == len(self._views) and all(
            view.shape == value.shape and view.dtype == value.dtype
            for view, value in zip(self._views, values, strict=True)
        )


def array_of(tensor: Any) -> Any:
    """A copy of a tensor."""
    try:
        return np.array(np.from_dlpack(tensor))
    except (RuntimeError, BufferError, TypeError):  # on a GPU, or of a type that NumPy lacks
        return tensor.numpy()
