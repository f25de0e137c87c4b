"""TVM's part for CUDA on machines without NVIDIA's driver: enough of it to hold machine code and write it.

That part is a library which links to the driver and the CUDA runtime. Where these are missing, libraries of
the same names stand in for them, whose functions fail.
"""

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from tuneloom.errors import TargetError

_NO_DEVICE = 100
_DRIVER = (
    *("cuDeviceGetName", "cuFuncSetAttribute", "cuGetErrorName", "cuGetErrorString", "cuLaunchKernelEx"),
    *("cuModuleGetFunction", "cuModuleLoadData", "cuModuleUnload", "cuTensorMapEncodeTiled"),
    *("cuInit", "cuDeviceGet", "cuDeviceGetCount"),  # for others who look for the driver in this process
)
_RUNTIME = (
    *("DeviceGetAttribute", "EventCreate", "EventDestroy", "EventElapsedTime", "EventRecord", "Free"),
    *("EventSynchronize", "FreeHost", "GetDevice", "GetDeviceCount", "GetDeviceProperties", "Malloc"),
    *("GetErrorName", "GetErrorString", "GetLastError", "GraphDestroy", "GraphExecDestroy", "MallocHost"),
    *("GraphInstantiate", "GraphLaunch", "MemGetInfo", "MemcpyAsync", "MemcpyPeerAsync", "SetDevice"),
    *("PeekAtLastError", "StreamBeginCapture", "StreamCreate", "StreamCreateWithFlags", "StreamDestroy"),
    *("StreamEndCapture", "StreamSynchronize", "StreamWaitEvent"),
)
_LIBRARIES = {"libcuda.so.1": _DRIVER, "libcudart.so.13": tuple(f"cuda{name}" for name in _RUNTIME)}


@cache
def load_cuda_part() -> None:
    """Load TVM's part for CUDA; raises TargetError if there is neither a driver nor a C compiler.

    Nothing that it is asked to run will run in this process.
    """
    from tvm.base import _LOADED_LIBS

    place = Path(_LOADED_LIBS["tvm_runtime"]._name).resolve().parent / "libtvm_runtime_cuda.so"
    with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
        for name, functions in _LIBRARIES.items():
            try:
                ctypes.CDLL(name, ctypes.RTLD_GLOBAL)
            except OSError:
                ctypes.CDLL(str(_stand_in(Path(folder), name, functions)), ctypes.RTLD_GLOBAL)
        ctypes.CDLL(str(place))


def _stand_in(folder: Path, name: str, functions: tuple[str, ...]) -> Path:
    """A library of this name whose functions say that there is no device."""
    source, versions, made = folder / "functions.c", folder / "versions", folder / name
    source.write_text("\n".join(f"int {one}(void) {{ return {_NO_DEVICE}; }}" for one in functions))
    versions.write_text(f"{name} {{ global: *; }};")
    command = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", f"-Wl,--version-script={versions}"]
    try:
        subprocess.run([*command, "-o", str(made), str(source)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise TargetError(
            "building for a GPU without NVIDIA's driver needs a C compiler; install one: cc"
        ) from error
    return made
