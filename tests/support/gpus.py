"""Which GPUs a process sees, asked of CUDA's driver itself."""

import ctypes
import uuid


def seen_gpus() -> list[str]:
    """The identifiers of the GPUs that this process may use, in order."""
    cuda = ctypes.CDLL("libcuda.so.1")
    count = ctypes.c_int()
    assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0
    return [_identifier(cuda, number) for number in range(count.value)]


def _identifier(cuda: ctypes.CDLL, number: int) -> str:
    device, found = ctypes.c_int(), (ctypes.c_ubyte * 16)()
    assert cuda.cuDeviceGet(ctypes.byref(device), number) == 0
    assert cuda.cuDeviceGetUuid_v2(found, device) == 0
    return f"GPU-{uuid.UUID(bytes=bytes(found))}"
