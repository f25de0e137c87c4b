"""A model that computes in another type, and what that does to its outputs."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tuneloom.backends.finding import backend_of
from tuneloom.compiler.renewing import bindings_of, with_outputs
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import InputError
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.compiling.running import Array

_LAYERS = ("relax.matmul", "relax.nn.conv", "relax.nn.attention")


def in_type(imported: ImportedModel, dtype: str) -> ImportedModel:
    """The model with products in a type; how its backend does that is up to the backend.

    Raises InputError if a product or convolution does not compute in float32, from which it is converted.
    """
    _require_single(imported, dtype)
    return replace(imported, digest=f"{imported.digest}-{dtype}", dtype=dtype)


def _require_single(imported: ImportedModel, dtype: str) -> None:
    bindings = bindings_of(imported.module)
    casts = {b.var: b.value.args[0] for b in bindings if _operator(b) == "relax.astype"}
    layers = (binding for binding in bindings if _operator(binding).startswith(_LAYERS))
    for number, layer in enumerate(layers, 1):
        operands = [casts.get(operand, operand) for operand in layer.value.args]
        kinds = [str(getattr(operand.ty, "dtype", "")) for operand in operands]
        other = next((kind for kind in kinds if "float" in kind and kind != "float32"), None)
        if other is not None:
            raise InputError(
                f"{imported.name}: {_named(layer)} (layer {number}) computes in {other}, which can't be "
                f"converted to {dtype}; export the model in float32, or omit --dtype"
            )


def halve(
    imported: ImportedModel, target: TargetSpec, values: Sequence[Array], tolerance: float, dtype: str
) -> ImportedModel:
    """The model in a type, with a note that tells how far its outputs are from those in float32.

    Raises TargetError where the hardware does not compute in it, and InputError for outputs beyond the
    tolerance.
    """
    backend_of(target).require_dtype(dtype, target)
    made = in_type(imported, dtype)
    return replace(made, notes=(*imported.notes, moved(made, imported, target, values, tolerance)))


def moved(
    made: ImportedModel,
    imported: ImportedModel,
    target: TargetSpec,
    values: Sequence[Array],
    tolerance: float,
) -> str:
    """How far the outputs of a model in another type are from those in float32, in words.

    Runs both on the target's device. Raises InputError for outputs beyond the tolerance, which names the
    first layer that is.
    """
    difference = max(_differences(made, imported, target, values))
    if not difference <= tolerance:
        raise InputError(
            f"{made.dtype} changes the outputs of {imported.name} by {difference:.2g}, more than the "
            f"tolerance of {tolerance:.2g}{_first_layer(made, imported, target, values, tolerance)}; raise "
            "--tolerance, or omit --dtype"
        )
    return f"{made.dtype}: outputs differ by {difference:.2g} from those in float32"


def _differences(
    made: ImportedModel, imported: ImportedModel, target: TargetSpec, values: Sequence[Array]
) -> list[float]:
    got, expected = (
        build_model(lower(one, target), {}, guess=True).open_here().run(values) for one in (made, imported)
    )
    return list(map(relative_difference, got, expected))


def _first_layer(
    made: ImportedModel,
    imported: ImportedModel,
    target: TargetSpec,
    values: Sequence[Array],
    tolerance: float,
) -> str:
    """Which product or convolution is the first whose result is beyond the tolerance."""
    layers = _layers(imported)
    if not layers:
        return ""
    outputs = tuple(TensorInfo(name=str(n), shape=(), dtype="float32") for n in range(len(layers)))
    watched = [replace(_watched(one), outputs=(*one.outputs, *outputs)) for one in (made, imported)]
    differences = _differences(watched[0], watched[1], target, values)[len(imported.outputs) :]
    for number, (layer, difference) in enumerate(zip(layers, differences, strict=True), 1):
        if not difference <= tolerance:
            shape = "×".join(str(int(extent)) for extent in layer.var.ty.shape.values)
            return f", layer {number} first ({_named(layer)} to {shape}, by {difference:.2g})"
    return ""


def _named(layer: object) -> str:
    return _operator(layer).removeprefix("relax.").removeprefix("nn.")


def _layers(model: ImportedModel) -> list[Any]:
    return [one for one in bindings_of(model.module) if _operator(one).startswith(_LAYERS)]


def _watched(model: ImportedModel) -> ImportedModel:
    """The model whose layers are outputs, too."""
    results = [layer.var for layer in _layers(model)]
    return replace(model, module=with_outputs(model.module, lambda _: results))


def _operator(binding: object) -> str:
    return str(getattr(getattr(getattr(binding, "value", None), "op", None), "name", ""))
