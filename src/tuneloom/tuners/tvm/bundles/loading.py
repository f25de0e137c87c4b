"""Bundles: a compiled model as a folder that can be loaded, run and timed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tuneloom.backends.cpu.features import check_cpu
from tuneloom.compiler.threads import use_cores
from tuneloom.errors import BundleError, InputError
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.bundles.fitting import Form, choose, fits_exactly, forms
from tuneloom.tuners.tvm.bundles.one_file import opened
from tuneloom.tuners.tvm.models.compiling.compiled import LIBRARY, CompiledModel, load_compiled
from tuneloom.tuners.tvm.models.compiling.running import Array, OpenModel, timed_for
from tuneloom.tuners.tvm.models.compiling.shapes import variant_folder
from tuneloom.tuners.tvm.runner.machine import load_libraries
from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.sizes import Sizes
from tuneloom.tuners.tvm.runner.state import KeptState

MANIFEST = "bundle.json"
SCHEDULES = "schedules.json"
RUNNER = "run.py"
*_OLDER, FORMAT = FORMATS = (1, 2, 3)
"""Since 2 there may be several sets of shapes; since 3 weights are in a safetensors file."""
_NEEDED, _OF_TARGET = ("target", "name", "inputs", "outputs"), ("machine", "mcpu", "cpu_features", "device")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A loaded bundle; runs in this process."""

    folder: Path
    manifest: Mapping[str, Any]
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    model: OpenModel = field(repr=False)
    variants: tuple[tuple[tuple[TensorInfo, ...], OpenModel], ...] = field(default=(), repr=False)
    """The model under further sets of shapes, each with its inputs."""
    _forms: tuple[Form, ...] = field(init=False, repr=False, compare=False)
    _state: KeptState = field(init=False, repr=False, compare=False)
    _sizes: Sizes | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_forms", forms(self.inputs))
        object.__setattr__(self, "_state", KeptState(dict(self.manifest)))
        varies = "sizes" in self.manifest
        object.__setattr__(self, "_sizes", Sizes(dict(self.manifest), self.folder) if varies else None)

    def run(self, *values: Array) -> list[Array]:
        """Run once, with the shapes that fit; raises InputError when the values fit none."""
        try:
            return self._state.keep(self._run(self._state.complete(values)))
        except Refused as error:
            raise InputError(str(error)) from error

    def reset(self) -> None:
        """Forget what the model kept from earlier runs."""
        self._state.reset()

    def _run(self, values: Sequence[Array]) -> list[Array]:
        if self._sizes is not None:
            return self._sizes.run(values, lambda number, own: self._models[number].run(own))
        if fits_exactly(values, self._forms):
            return self.model.run(values)
        inputs = [self.inputs, *(infos for infos, _ in self.variants)]
        chosen = choose(values, inputs, bool(self.manifest.get("pad")))
        return chosen.cut(self._models[chosen.variant].run(chosen.values))

    @property
    def _models(self) -> list[OpenModel]:
        return [self.model, *(model for _, model in self.variants)]

    def time(self, seconds: float, least: int = 5) -> list[float]:
        """Seconds of single runs on seeded inputs, for so long, at least so many."""
        from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs

        timer = self.model.timer(seeded_inputs(self.inputs, seed=0))
        timer()
        return timed_for(timer, seconds, least)


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a bundle, a folder or a file; raises BundleError for anything else."""
    try:
        manifest: dict[str, Any] = json.loads((opened(folder) / MANIFEST).read_text())
    except FileNotFoundError as error:
        raise BundleError(
            f"{folder} is not a bundle: it has no {MANIFEST}; `tuneloom tune --out` writes one"
        ) from error
    except (OSError, ValueError) as error:
        raise BundleError(f"{folder / MANIFEST} can't be read: {error}") from error
    if not isinstance(manifest, dict):
        raise BundleError(f"{folder / MANIFEST} does not describe a bundle; tune the model again")
    if manifest.get("format") not in FORMATS:
        known = f"{', '.join(map(str, _OLDER))} and {FORMAT}"
        words = f"{folder} has format {manifest.get('format')!r}; this version reads {known}"
        raise BundleError(f"{words}: {_remedy(manifest.get('format'))}")
    target = manifest.get("target")
    missing = [name for name in _NEEDED if name not in manifest]
    missing += [name for name in _OF_TARGET if not isinstance(target, dict) or name not in target]
    if missing:
        raise BundleError(f"{folder / MANIFEST} is damaged: it has no {missing[0]!r}; tune the model again")
    return manifest


def _remedy(found: Any) -> str:
    """What to do about a bundle of this format: only a later version can have written a greater number."""
    is_later = isinstance(found, int) and found > FORMAT
    return "update Tuneloom, or tune the model again" if is_later else "tune the model again"


def load_bundle(folder: Path) -> Bundle:
    """Load a bundle; raises BundleError if it was built for another CPU, is damaged, or lacks a library."""
    folder, manifest = opened(folder), read_manifest(folder)
    target = manifest["target"]
    check_cpu(target["cpu_features"], target["mcpu"], target["machine"])
    try:
        load_libraries(manifest.get("requires", ()))
    except Refused as error:
        raise BundleError(f"{folder}: {error}") from error
    whole = any(part.get("whole") for part in manifest.get("onnxruntime", ()))
    if not whole and not (folder / LIBRARY).is_file():
        raise BundleError(f"{folder} is damaged: {LIBRARY} is missing; tune the model again")
    cores = int(manifest.get("provenance", {}).get("device_cores") or 1)
    use_cores(cores)
    first, inputs, outputs = _loaded(folder, manifest, cores, device=target["device"])
    further = [
        _loaded(folder / variant_folder(n), entry, cores, first.parameters, target["device"])
        for n, entry in enumerate(manifest.get("shapes", ()), 1)
    ]
    placed: dict[int, Any] = {}
    return Bundle(
        folder=folder,
        manifest=manifest,
        inputs=inputs,
        outputs=outputs,
        model=first.deployed(placed),
        variants=tuple((infos, model.deployed(placed)) for model, infos, _ in further),
    )


def _loaded(
    folder: Path, entry: Mapping[str, Any], threads: int, shared: Sequence[Array] = (), device: str = "cpu"
) -> tuple[CompiledModel, tuple[TensorInfo, ...], tuple[TensorInfo, ...]]:
    """The model under one set of shapes, with its inputs and outputs."""
    inputs = tuple(tensor_info(info) for info in entry["inputs"])
    outputs = tuple(tensor_info(info) for info in entry["outputs"])
    compiled = load_compiled(folder, inputs, outputs, entry.get("onnxruntime", ()), shared, threads, device)
    return compiled, inputs, outputs


def tensor_info(entry: Mapping[str, Any]) -> TensorInfo:
    return TensorInfo(name=entry["name"], shape=tuple(entry["shape"]), dtype=entry["dtype"])
