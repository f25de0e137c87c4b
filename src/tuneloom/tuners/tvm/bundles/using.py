"""What workers do with bundles; expected errors are values."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tuneloom.errors import InputError, OutputError, TuneloomError
from tuneloom.tuners.tvm.bundles.loading import load_bundle
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.running import Array
from tuneloom.tuners.tvm.models.rivals.runtimes import open_rival
from tuneloom.tuners.tvm.models.rivals.turns import in_turn


def time_bundle(folder: str, seconds: float) -> list[float] | TuneloomError:
    """Seconds of single runs of a bundle."""
    try:
        return load_bundle(Path(folder)).time(seconds)
    except TuneloomError as error:
        return error


def compare_bundle(folder: str, against: str, seconds: float, threads: int) -> dict[str, Any] | TuneloomError:
    """Times of a bundle and of its model's own runtime, taken in turn, and how far their outputs differ."""
    from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs

    try:
        bundle = load_bundle(Path(folder))
        model = str(bundle.manifest["provenance"]["model"])
        rival = open_rival(against, model, bundle.inputs, bundle.outputs, threads)
        values = seeded_inputs(bundle.inputs, seed=0)
        pairs = zip(bundle.run(*values), rival(values), strict=True)
        difference = max(relative_difference(ours, theirs) for ours, theirs in pairs)
    except TuneloomError as error:
        return error
    ours_s, theirs_s = in_turn(lambda: bundle.run(*values), lambda: rival(values), seconds)
    return {"difference": difference, "seconds": ours_s, "against_s": theirs_s}


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
        with Path(path).open("rb") as file:
            value: Array = np.lib.format.read_array(file, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        why = (isinstance(error, OSError) and error.strerror) or str(error)
        raise InputError(f"{path} can't be read as a NumPy array: {why}; write it with numpy.save") from error
    return value


def _write(path: Path, value: Array) -> None:
    """Write an array; NumPy's files have no bfloat16, so float32 stands for it."""
    goal = path.absolute()  # a path such as `.` has no name
    unfinished = goal.with_name(f".{goal.name}.{os.getpid()}.npy")
    try:
        np.save(unfinished, value.astype(np.float32) if value.dtype.name == "bfloat16" else value)
        unfinished.replace(goal)
    except OSError as error:
        with suppress(OSError):
            unfinished.unlink()
        raise OutputError(
            f"can't write {path}: {error.strerror}; choose another place with --output"
        ) from error
