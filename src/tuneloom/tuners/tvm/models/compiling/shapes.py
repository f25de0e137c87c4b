"""One model under several sets of shapes, written with equal weights once."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tuneloom.tuners.tvm.models.compiling.compiled import SHARED, CompiledModel, parameter_name
from tuneloom.tuners.tvm.models.compiling.running import Array
from tuneloom.tuners.tvm.models.compiling.storing import PARAMETERS, write_parameters


def variant_folder(number: int) -> str:
    """Where a bundle keeps the model under its nth set of shapes; that of the first, number 0, is its own."""
    return f"shapes_{number}" if number else "."


def export_all(models: Sequence[CompiledModel], folder: Path) -> None:
    """Write the model under all its shapes; weights that variants have in common are there once."""
    models[0].export(folder)
    known = {digest_of(value): n for n, value in enumerate(models[0].parameters)}
    for number, model in enumerate(models[1:], 1):
        place = folder / variant_folder(number)
        place.mkdir()
        digests = [digest_of(value) for value in model.parameters]
        own: dict[str, Any] = {
            parameter_name(n): model.parameters[n] for n, digest in enumerate(digests) if digest not in known
        }
        model.export_program(place)
        write_parameters(place / PARAMETERS, own)
        (place / SHARED).write_text(json.dumps([known.get(digest) for digest in digests]))


def digest_of(value: Array) -> bytes:
    """What tells weights from others."""
    sha = hashlib.sha256(repr((value.shape, str(value.dtype))).encode())
    sha.update(np.ascontiguousarray(value).view(np.uint8).reshape(-1).tobytes())
    return sha.digest()
