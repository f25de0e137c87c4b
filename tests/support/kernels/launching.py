"""Runs machine code on a GPU by the driver, with PyTorch's memory and stream."""

import ctypes
from collections.abc import Sequence
from functools import cache
from typing import Any

from tuneloom.backends.cuda.code import DeviceCode, Launch
from tuneloom.backends.meaning import Meaning, TensorType

_DYNAMIC_SHARED = 8
_POISON = 77


@cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _check(status: int) -> None:
    if status:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError(f"CUDA error {status}: {(text.value or b'').decode()}")


class LoadedCode:
    """Kernels in a GPU's memory, to be launched on tensors of PyTorch."""

    def __init__(self, meaning: Meaning, code: DeviceCode) -> None:
        self._code = code
        self._functions = [_loaded(each) for each in code.launches]
        self.outputs = [_empty(meaning.type_of(each)) for each in meaning.outputs]
        self._scratch = [_empty(each) for each in code.scratch]

    def launch(self, inputs: Sequence[Any]) -> None:
        """Launch every kernel on PyTorch's current stream."""
        import torch

        tensors = {"input": inputs, "output": self.outputs, "scratch": self._scratch}
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        for function, each in zip(self._functions, self._code.launches, strict=True):
            pointers = [
                ctypes.c_void_p(0 if to.role == "null" else tensors[to.role][to.number].data_ptr())
                for to in each.arguments
            ]
            addresses = (ctypes.c_void_p * len(pointers))(
                *(ctypes.addressof(pointer) for pointer in pointers)
            )
            block = (each.threads, 1, 1)
            _check(
                _driver().cuLaunchKernel(
                    function, *each.grid, *block, each.shared_bytes, stream, addresses, None
                )
            )


def _loaded(launch: Launch) -> ctypes.c_void_p:
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    _check(_driver().cuModuleLoadData(ctypes.byref(module), launch.cubin))
    _check(_driver().cuModuleGetFunction(ctypes.byref(function), module, launch.symbol.encode()))
    _check(_driver().cuFuncSetAttribute(function, _DYNAMIC_SHARED, launch.shared_bytes))
    return function


def _empty(tensor: TensorType) -> Any:
    """Memory filled with what no kernel computes by chance."""
    import torch

    made = torch.empty(tensor.shape, dtype=getattr(torch, tensor.dtype), device="cuda")
    made.view(torch.uint8).fill_(_POISON) if made.dtype in (torch.bool, torch.uint8) else made.fill_(_POISON)
    return made
