"""Which layer of a model in another type is the first whose result moves too far."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tuneloom.backends.meaning import MULTIPLYING
from tuneloom.compiler.renewing import bindings_of, with_outputs
from tuneloom.errors import InputError
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.running import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A model in another type beside the one that it was made from, and how a model's outputs are found."""

    made: ImportedModel
    original: ImportedModel
    outputs: Callable[[ImportedModel], Sequence[Array]]

    def differences(self) -> list[float]:
        """How far each output moved."""
        return list(map(relative_difference, self.outputs(self.made), self.outputs(self.original)))

    def refusal(self, difference: float, tolerance: float, shown: str = ".2g") -> InputError:
        """That outputs moved beyond the tolerance, with the first layer that did."""
        return InputError(
            f"{self.made.dtype} changes the outputs of {self.original.name} by {difference:{shown}}, more "
            f"than the tolerance of {tolerance:{shown}}{self._first_layer(tolerance, shown)}; raise "
            "--tolerance, or omit --dtype"
        )

    def _first_layer(self, tolerance: float, shown: str) -> str:
        """Which product or convolution is the first whose result is beyond the tolerance."""
        layers = layers_of(self.original)
        if len(layers) != len(layers_of(self.made)):  # one of constants was computed beforehand
            return ""
        watched = replace(self, made=_watched(self.made), original=_watched(self.original))
        differences = watched.differences()[len(self.original.outputs) :]
        for number, (layer, difference) in enumerate(zip(layers, differences, strict=True), 1):
            if not difference <= tolerance:
                shape = "×".join(str(int(extent)) for extent in layer.var.ty.shape.values)
                return f", layer {number} first ({layer_name(layer)} to {shape}, by {difference:{shown}})"
        return ""


def layers_of(model: ImportedModel) -> list[Any]:
    """The bindings of a model's products, convolutions and attention, in order."""
    return [one for one in bindings_of(model.module) if operator_of(one).startswith(MULTIPLYING)]


def layer_name(layer: object) -> str:
    """What a layer is called without the name of its library."""
    return operator_of(layer).removeprefix("relax.").removeprefix("nn.")


def operator_of(binding: object) -> str:
    """The operator that a binding calls; empty for anything else."""
    return str(getattr(getattr(getattr(binding, "value", None), "op", None), "name", ""))


def _watched(model: ImportedModel) -> ImportedModel:
    """The model whose layers are outputs, too."""
    results = [layer.var for layer in layers_of(model)]
    infos = tuple(TensorInfo(name=str(n), shape=(), dtype="float32") for n in range(len(results)))
    module = with_outputs(model.module, lambda _: results) if results else model.module
    return replace(model, module=module, outputs=(*model.outputs, *infos))
