"""Weights as a safetensors file: they can be mapped, and have types that NumPy's archives lack."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tuneloom.tuners.tvm.models.compiling.running import Array
from tuneloom.tuners.tvm.runner.weights import ALIGNMENT, TYPES

PARAMETERS = "parameters.safetensors"
_NAMES = {dtype: name for name, dtype in TYPES.items()}


def write_parameters(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays without a copy of all of them; those that fill whole blocks first, so they are aligned."""
    ordered = sorted(arrays, key=lambda name: arrays[name].nbytes % ALIGNMENT != 0)
    header: dict[str, Any] = {}
    end = 0
    for name in ordered:
        begin, end = end, end + arrays[name].nbytes
        kind, shape = _NAMES[arrays[name].dtype.name], list(arrays[name].shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in ordered:
            # not tofile(), which does not say why it stopped when a disk is full
            file.write(np.ascontiguousarray(arrays[name]).reshape(-1).view(np.uint8).data)
