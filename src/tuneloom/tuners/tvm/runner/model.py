"""The model of a bundle under all its shapes."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tuneloom.tuners.tvm.runner.machine import check_machine, load_libraries
from tuneloom.tuners.tvm.runner.padding import cut, fits, padded_to
from tuneloom.tuners.tvm.runner.parts import provide
from tuneloom.tuners.tvm.runner.programs import CompiledProgram, run_where_they_are
from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.runtimes import ONNXRUNTIME, WholeModel, run_by
from tuneloom.tuners.tvm.runner.sizes import Sizes
from tuneloom.tuners.tvm.runner.state import KeptState
from tuneloom.tuners.tvm.runner.tensors import is_tensor


class Model:
    """The model of a bundle, ready to run: NumPy in, NumPy out; or tensors of its device, without copies."""

    def __init__(self, folder: Path) -> None:
        self.manifest: dict[str, Any] = json.loads((folder / "bundle.json").read_text())
        check_machine(self.manifest["target"])
        load_libraries(self.manifest.get("requires", []))
        self.state = KeptState(self.manifest)
        self._variants = [self._loaded(folder, self.manifest, [])]
        shared = getattr(self._variants[0][1], "parameters", [])
        for number, entry in enumerate(self.manifest.get("shapes", []), 1):
            self._variants.append(self._loaded(folder / f"shapes_{number}", entry, shared))
        self.sizes = Sizes(self.manifest, folder) if "sizes" in self.manifest else None

    def _loaded(self, folder: Path, entry: dict[str, Any], shared: list[Any]) -> tuple[Any, Any]:
        """The model under one set of shapes: its entry, and what runs it."""
        threads = int(self.manifest.get("provenance", {}).get("device_cores") or 1)
        parts = entry.get("onnxruntime", [])
        for part in parts:
            if part.get("whole"):
                file = str(folder / Path(part["file"]).name)
                return entry, WholeModel(run_by(part.get("runtime", ONNXRUNTIME), file, entry, threads))
        provide(folder, parts, threads)
        return entry, CompiledProgram(
            folder, self.manifest["target"]["device"], len(entry["outputs"]), shared
        )

    def run(self, values: Sequence[Any], stream: int | None = None) -> list[Any]:
        """All outputs for one array per input, in the order of the manifest.

        Tensors of the model's device, of any library that speaks DLPack, are read where they are, and tensors
        come back: PyTorch's for PyTorch's, otherwise ones that `from_dlpack` takes. Work is queued on
        `stream` (a handle), by default on PyTorch's current one for its tensors; nobody waits for it.
        """
        values = self.state.complete(values)
        if self.sizes is not None:
            return self.sizes.run(values, lambda number, own: self._run(*self._variants[number], own, stream))
        return self.state.keep(self._run(*self._fitting(values), values, stream))

    def _run(self, entry: Any, program: Any, values: Sequence[Any], stream: int | None) -> list[Any]:
        infos = entry["inputs"]
        if any(map(is_tensor, values)):
            return run_where_they_are(program, values, infos, stream)
        pairs = zip(values, infos, strict=True)
        padded = [padded_to(value, info["shape"], info["dtype"]) for value, info in pairs]
        given, shapes = [value.shape for value in values], [info["shape"] for info in infos]
        return [cut(output, given, shapes) for output in program.run(padded)]

    @property
    def on_tensors(self) -> Callable[[Sequence[Any]], list[Any]]:
        """Gives all outputs for tensors with DLPack, in the first shapes and types; nothing is copied."""
        return self._variants[0][1].on_tensors  # type: ignore[no-any-return]

    def _fitting(self, values: Sequence[Any]) -> tuple[Any, Any]:
        """The variant that has these shapes, or the smallest that holds them if the bundle pads."""
        given = [list(value.shape) for value in values]
        for variant in self._variants:
            if given == [info["shape"] for info in variant[0]["inputs"]]:
                return variant
        holding = [
            one
            for one in self._variants
            if all(fits(small, info["shape"]) for small, info in zip(given, one[0]["inputs"], strict=True))
        ]
        if self.manifest.get("pad") and holding and not any(map(is_tensor, values)):
            return min(holding, key=lambda one: sum(int(np.prod(i["shape"])) for i in one[0]["inputs"]))
        known = " or ".join(shown(entry["inputs"]) for entry, _ in self._variants)
        raise Refused(f"the model takes {known}, got {', '.join(map(str, map(tuple, given)))}")


def shown(infos: Sequence[dict[str, Any]]) -> str:
    """Inputs with their shapes, for people."""
    return ", ".join(f"{info['name']} {tuple(info['shape'])}" for info in infos)
