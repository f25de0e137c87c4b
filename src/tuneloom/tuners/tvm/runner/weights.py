"""Weights of a bundle, mapped from its file."""

import json
from pathlib import Path
from typing import Any

import numpy as np

CPU = 1
"""DLPack's number for memory of the host."""
ALIGNMENT = 64
"""Where compiled code expects its tensors to begin, in bytes."""
ELSEWHERE = "parameters.json"
"""Says in which file the weights are, and where they begin in it, if a bundle is one file."""
TYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "BOOL": "bool",
    **{f"{kind[0].upper()}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}
"""Names of types in a safetensors file."""


def stored_parameters(folder: Path) -> dict[str, Any]:
    """The weights in a folder of a bundle, by name; older ones are in a NumPy archive."""
    if (folder / "parameters.safetensors").is_file():
        return mapped(folder / "parameters.safetensors")
    if (folder / ELSEWHERE).is_file():
        return mapped(*json.loads((folder / ELSEWHERE).read_text()))
    with np.load(folder / "parameters.npz") as stored:
        return {name: stored[name] for name in stored.files}


def mapped(path: Path, begin: int = 0) -> dict[str, Any]:
    """The arrays of a safetensors file, whose pages are read when they are used and shared by processes."""
    raw = np.memmap(path, np.uint8, mode="c", offset=begin)
    start = 8 + int.from_bytes(raw[:8].tobytes(), "little")
    header = json.loads(raw[8:start].tobytes())
    found = {}
    for name, entry in header.items():
        if name != "__metadata__":
            first, end = (start + place for place in entry["data_offsets"])
            found[name] = raw[first:end].view(type_named(TYPES[entry["dtype"]])).reshape(entry["shape"])
    return found


def type_named(name: str) -> Any:
    """A type of NumPy, or one that a package of TVM's adds to it."""
    if name == "bfloat16":
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    return np.dtype(name)


def on_device(value: Any, device: Any) -> Any:
    """Weights as a tensor of a device; what is mapped stays where it is if code can read it there."""
    import tvm

    here = isinstance(value, np.memmap) and int(device.dlpack_device_type()) == CPU
    if here and value.dtype.kind in "iuf" and value.size and value.ctypes.data % ALIGNMENT == 0:
        return tvm.runtime.from_dlpack(value)
    return tvm.runtime.tensor(np.ascontiguousarray(value), device)
