"""The CUDA driver and its runtime compiler, reached through their C interfaces."""

import ctypes
import ctypes.util
import glob
import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any


class CudaError(RuntimeError):
    """A call to the driver or the compiler failed; the text names both."""


@cache
def driver() -> Any:
    """The driver with a context on the first device; raises CudaError without a GPU."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        library = None
    if not hasattr(library, "cuDevicePrimaryCtxRetain"):  # what stands in for it has no contexts
        raise CudaError("no NVIDIA driver here (libcuda.so.1)")
    called(library, "cuInit", 0)
    device = ctypes.c_int()
    called(library, "cuDeviceGet", ctypes.byref(device), 0)
    context = ctypes.c_void_p()
    called(library, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    called(library, "cuCtxSetCurrent", context)
    return library


def called(library: Any, name: str, *arguments: Any) -> None:
    """Call a driver function; raises CudaError with the driver's own words."""
    status = getattr(library, name)(*arguments)
    if status:
        text = ctypes.c_char_p()
        library.cuGetErrorString(status, ctypes.byref(text))
        raise CudaError(f"{name}: {(text.value or b'unknown error').decode()} ({status})")


@cache
def architecture() -> str:
    """The first device's architecture, such as sm_90."""
    library, device = driver(), ctypes.c_int()
    called(library, "cuDeviceGet", ctypes.byref(device), 0)
    numbers = []
    for attribute in (75, 76):  # compute capability, major and minor
        value = ctypes.c_int()
        called(library, "cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
        numbers.append(value.value)
    return f"sm_{numbers[0]}{numbers[1]}"


@cache
def compiler() -> Any:
    """NVRTC, from the system, $CUDA_HOME, or the packages that ship it; raises CudaError without it."""
    for candidate in _candidates():
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    raise CudaError("no NVRTC found; install the CUDA toolkit or the package nvidia-cuda-nvrtc")


def _candidates() -> list[str]:
    found = [name for name in (ctypes.util.find_library("nvrtc"),) if name]
    homes = [os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]
    for home in filter(None, homes):
        found += sorted(glob.glob(f"{home}/lib64/libnvrtc.so*"))
    for package in ("nvidia", "torch"):
        spec = importlib.util.find_spec(package)
        for place in (spec.submodule_search_locations or []) if spec else []:
            found += sorted(str(p) for p in Path(place).rglob("libnvrtc.so*"))
    return found


def compiled(source: str, options: list[str]) -> tuple[bytes, str]:
    """Machine code and the compiler's log; raises CudaError with the log if the source does not compile."""
    library, program = compiler(), ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    given = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    try:
        status = library.nvrtcCompileProgram(program, len(options), given)
        log = _text(library, program, "ProgramLog").decode(errors="replace").strip("\0 \n")
        if status:
            raise CudaError(f"NVRTC: {log[:400] or status}")
        return _text(library, program, "CUBIN"), log
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(library: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw
