"""Values that a model is run on: samples that a user gives, or seeded ones."""

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.errors import InputError
from tuneloom.model import CALIBRATED, ModelRecipe, TensorInfo
from tuneloom.tuners.tvm.measuring.profiling import random_values

Array = NDArray[Any]
MOST = 64
"""How many samples are looked at."""
_DRAWN = 8


def values_for(recipe: ModelRecipe, inputs: tuple[TensorInfo, ...], seed: int) -> list[Array]:
    """What a model is checked and timed with: seeded values, or a sample where precision is lower.

    Values that were not calibrated for would tell nothing about the outputs.
    """
    if recipe.dtype not in CALIBRATED:
        return seeded_inputs(inputs, seed)
    return samples_of(recipe.samples, inputs)[0]


def samples_of(path: str, inputs: tuple[TensorInfo, ...]) -> list[list[Array]]:
    """The samples of an archive, or the same random ones every time where none is named."""
    return read_samples(path, inputs) if path else [seeded_inputs(inputs, seed) for seed in range(_DRAWN)]


def seeded_inputs(inputs: tuple[TensorInfo, ...], seed: int) -> list[Array]:
    """The same values for the same seed, for every input of the model."""
    random = np.random.default_rng(seed)
    return [random_values(random, info.dtype, info.shape) for info in inputs]


def read_samples(path: str, inputs: Sequence[TensorInfo]) -> list[list[Array]]:
    """The samples of a NumPy archive, each with one array for every input.

    An input has an array under its name, of its own shape or with more along its first axis. Raises
    InputError for anything else.
    """
    stored = _read(path)
    parts = [_parts(path, stored, info) for info in inputs]
    counts = {len(part) for part in parts}
    if len(counts) > 1:
        told = ", ".join(f"{len(part)} of {info.name!r}" for part, info in zip(parts, inputs, strict=True))
        raise InputError(f"{path}: every input needs as many samples as the others, got {told}")
    return [list(one) for one in zip(*parts, strict=True)][:MOST]


def _read(path: str) -> dict[str, Array]:
    try:
        Path(path).stat()
        if not zipfile.is_zipfile(path):  # NumPy would take it for a pickle, and say how to trust that
            raise ValueError("it is not a NumPy archive, or a damaged one")
        with np.load(Path(path), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, AttributeError, RuntimeError, zlib.error, zipfile.BadZipFile) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise InputError(
            f"can't read samples from {path}: {why}; write them with numpy.savez(path, INPUT=values, …)",
            field="samples",
        ) from error


def _parts(path: str, stored: dict[str, Array], info: TensorInfo) -> list[Array]:
    if info.name not in stored:
        known = ", ".join(map(repr, stored)) or "nothing"
        raise InputError(f"{path} has no samples for input {info.name!r}; it has {known}")
    value = stored[info.name]
    first, *rest = info.shape or (1,)
    fits = value.ndim == len(info.shape) and list(value.shape[1:]) == rest and value.shape[0] % first == 0
    if not fits or value.size == 0:
        wanted = ", ".join(["N" if first == 1 else f"N × {first}", *map(str, rest)])
        raise InputError(f"{path}: samples of {info.name!r} must be ({wanted}), got {_shown(value.shape)}")
    if value.dtype.kind != np.dtype(info.dtype).kind:
        raise InputError(f"{path}: samples of {info.name!r} must be {info.dtype}, got {value.dtype}")
    if not np.isfinite(value.astype(np.float64)).all():
        raise InputError(f"{path}: samples of {info.name!r} must be finite numbers")
    return list(np.split(value.astype(info.dtype), value.shape[0] // first))


def _shown(shape: Any) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"
