"""Bundles: a compiled model as a folder that can be loaded, run and timed."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneloom.errors import BundleError, InputError
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.models.final import LIBRARY, Array, RunningModel, load_compiled
from tuneloom.tuners.tvm.targets.cpu import check_cpu
from tuneloom.tuners.tvm.targets.threads import use_cores

MANIFEST = "bundle.json"
SCHEDULES = "schedules.json"
RUNNER = "run.py"
FORMAT = 1
_MOST_RUNS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A loaded bundle; runs in this process."""

    folder: Path
    manifest: Mapping[str, Any]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    model: RunningModel = field(repr=False)

    def run(self, *values: Array) -> list[Array]:
        """Run once; raises InputError when the values don't fit the interface."""
        return self.model.run(fitting(values, self.inputs))

    def time(self, seconds: float, least: int = 5) -> list[float]:
        """Seconds of single runs on seeded inputs, for so long, at least so many."""
        from tuneloom.tuners.tvm.models.stages import seeded_inputs

        tvm = load_tvm()
        values = seeded_inputs(self.inputs, seed=0)
        tensors = [tvm.runtime.tensor(value, self.model.device) for value in values]
        self.model.invoke(tensors)
        times: list[float] = []
        ends = time.perf_counter() + seconds
        while len(times) < least or (time.perf_counter() < ends and len(times) < _MOST_RUNS):
            started = time.perf_counter()
            self.model.invoke(tensors)
            self.model.device.sync()
            times.append(time.perf_counter() - started)
        return times


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a bundle; raises BundleError for anything else."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text())
    except FileNotFoundError as error:
        raise BundleError(
            f"{folder} is not a bundle: it has no {MANIFEST}; `tuneloom tune --out` writes one"
        ) from error
    except (OSError, ValueError) as error:
        raise BundleError(f"{folder / MANIFEST} can't be read: {error}") from error
    if manifest.get("format") != FORMAT:
        raise BundleError(
            f"{folder} has format {manifest.get('format')!r}; this version reads format {FORMAT}"
        )
    return manifest


def load_bundle(folder: Path) -> Bundle:
    """Load a bundle; raises BundleError when it was built for another CPU or is damaged."""
    manifest = read_manifest(folder)
    target = manifest["target"]
    check_cpu(target["cpu_features"], target["mcpu"], target["machine"])
    if not (folder / LIBRARY).is_file():
        raise BundleError(f"{folder} is damaged: {LIBRARY} is missing; tune the model again")
    use_cores(int(manifest.get("provenance", {}).get("device_cores") or 1))
    inputs = tuple(tensor_info(entry) for entry in manifest["inputs"])
    outputs = tuple(tensor_info(entry) for entry in manifest["outputs"])
    compiled = load_compiled(folder, inputs, outputs, manifest.get("onnxruntime", ()))
    model = compiled.open_here(target["device"])
    return Bundle(folder=folder, manifest=manifest, inputs=inputs, outputs=outputs, model=model)


def tensor_info(entry: Mapping[str, Any]) -> TensorInfo:
    return TensorInfo(name=entry["name"], shape=tuple(entry["shape"]), dtype=entry["dtype"])


def fitting(values: Sequence[Array], inputs: Sequence[TensorInfo]) -> list[Array]:
    """The values as the model wants them; raises InputError naming the one that does not fit."""
    if len(values) != len(inputs):
        names = ", ".join(info.name for info in inputs)
        raise InputError(f"the model takes {len(inputs)} inputs ({names}), got {len(values)}")
    for value, info in zip(values, inputs, strict=True):
        if tuple(value.shape) != info.shape:
            raise InputError(
                f"input {info.name!r} must have the shape {info.shape}, got {tuple(value.shape)}"
            )
    return [value.astype(info.dtype, copy=False) for value, info in zip(values, inputs, strict=True)]
