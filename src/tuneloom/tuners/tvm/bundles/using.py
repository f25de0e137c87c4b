"""What workers do with bundles; expected errors are values."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tuneloom.errors import InputError, ModelError, OutputError, TuneloomError
from tuneloom.model import TF32_TYPES
from tuneloom.tuners.tvm.bundles.loading import load_bundle
from tuneloom.tuners.tvm.measuring.energy import energy_of
from tuneloom.tuners.tvm.measuring.profiling import undisturbed, watch_of
from tuneloom.tuners.tvm.models.compiling.running import Array, clock_of
from tuneloom.tuners.tvm.models.rivals.runtimes import Comparable, competitors
from tuneloom.tuners.tvm.models.rivals.turns import Beside, all_in_turn, opened_beside


def time_bundle(folder: str, seconds: float) -> dict[str, Any] | TuneloomError:
    """Seconds of single runs of a bundle; what its device did, and joules of a run, where it tells them."""
    from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs

    try:
        bundle = load_bundle(Path(folder))
        watch = watch_of(str(bundle.manifest["target"]["device"]))
        times, conditions = undisturbed(lambda: bundle.time(seconds), watch)
        timer = bundle.model.timer(seeded_inputs(bundle.inputs, seed=0))
        return {"seconds": times, "conditions": dict(conditions), "energy_j": energy_of(timer, watch)}
    except TuneloomError as error:
        return error


def compare_bundle(folder: str, against: str, seconds: float, threads: int) -> dict[str, Any] | TuneloomError:
    """Times of a bundle and of its model in another runtime, taken in turn, and how far outputs differ.

    Where a runtime has several ways to run a model, these are all timed; one that fails says why.
    """
    from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs

    try:
        bundle = load_bundle(Path(folder))
        provenance = bundle.manifest["provenance"]
        this = Comparable(
            model=str(provenance["model"]),
            inputs=bundle.inputs,
            outputs=bundle.outputs,
            device=str(bundle.manifest["target"]["device"]),
            threads=threads,
            dtype=str(provenance.get("dtype", "float32")),
        )
        values = seeded_inputs(bundle.inputs, seed=0)
        found = opened_beside(bundle.model, values, competitors(against, this))
    except TuneloomError as error:
        return error
    opened = {name: beside for name, beside in found.items() if isinstance(beside, Beside)}
    if not opened:
        return ModelError("; ".join(f"{name}: {why}" for name, why in found.items()))
    timers = [bundle.model.timer(values), *(each.timer for each in opened.values())]
    ours_s, *theirs = all_in_turn(timers, seconds, now=clock_of(bundle.model))
    rivals: list[dict[str, Any]] = [
        {"name": name, "difference": each.difference, "seconds": times}
        for (name, each), times in zip(opened.items(), theirs, strict=True)
    ]
    rivals += [{"name": name, "failed": why} for name, why in found.items() if isinstance(why, str)]
    return {"seconds": ours_s, "rivals": rivals, "tf32": this.dtype in TF32_TYPES}


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
