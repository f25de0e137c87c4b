"""What workers do with bundles; expected errors are values."""

import os
from pathlib import Path

import numpy as np

from tuneloom.errors import InputError, OutputError, TuneloomError
from tuneloom.tuners.tvm.bundles.loading import load_bundle
from tuneloom.tuners.tvm.models.final import Array


def time_bundle(folder: str, seconds: float) -> list[float] | TuneloomError:
    """Seconds of single runs of a bundle."""
    try:
        return load_bundle(Path(folder)).time(seconds)
    except TuneloomError as error:
        return error


def run_on_files(folder: str, inputs: list[str], outputs: list[str]) -> TuneloomError | None:
    """Run a bundle on NumPy files and write what comes out."""
    try:
        bundle = load_bundle(Path(folder))
        results = bundle.run(*(_read(path) for path in inputs))
        if len(outputs) != len(results):
            names = ", ".join(info.name for info in bundle.outputs)
            raise InputError(f"the model gives {len(results)} outputs ({names}); name as many with --output")
        for path, value in zip(outputs, results, strict=True):
            _write(Path(path), value)
    except TuneloomError as error:
        return error
    return None


def _read(path: str) -> Array:
    try:
        value: Array = np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{path} can't be read as a NumPy array: {error}") from error
    return value


def _write(path: Path, value: Array) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.npy")
    try:
        np.save(unfinished, value)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise OutputError(
            f"can't write {path}: {error.strerror}; choose another place with --output"
        ) from error
