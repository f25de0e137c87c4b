"""A model that computes in another type, and what that does to its outputs."""

from collections.abc import Sequence
from dataclasses import replace

from tuneloom.backends.finding import backend_of
from tuneloom.backends.meaning import MULTIPLYING
from tuneloom.compiler.renewing import bindings_of
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import InputError
from tuneloom.model import TF32_TYPES
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.running import Array
from tuneloom.tuners.tvm.models.precision.layers import (
    Conversion,
    layer_name,
    operator_of,
)


def in_type(imported: ImportedModel, dtype: str) -> ImportedModel:
    """The model with products in a type; how its backend does that is up to the backend.

    Raises InputError if a product or convolution does not compute in float32, from which it is converted;
    TF32 converts nothing.
    """
    if dtype not in TF32_TYPES:
        _require_single(imported, dtype)
    return replace(imported, digest=f"{imported.digest}-{dtype}", dtype=dtype)


def _require_single(imported: ImportedModel, dtype: str) -> None:
    bindings = bindings_of(imported.module)
    casts = {b.var: b.value.args[0] for b in bindings if operator_of(b) == "relax.astype"}
    layers = (binding for binding in bindings if operator_of(binding).startswith(MULTIPLYING))
    for number, layer in enumerate(layers, 1):
        operands = [casts.get(operand, operand) for operand in layer.value.args]
        kinds = [str(getattr(operand.ty, "dtype", "")) for operand in operands]
        other = next((kind for kind in kinds if "float" in kind and kind != "float32"), None)
        if other is not None:
            raise InputError(
                f"{imported.name}: {layer_name(layer)} (layer {number}) computes in {other}, which can't be "
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
    conversion = Conversion(
        made=made, original=imported, outputs=lambda model: _outputs(model, target, values)
    )
    difference = max(conversion.differences())
    if not difference <= tolerance:
        raise conversion.refusal(difference, tolerance)
    return f"{made.dtype}: outputs differ by {difference:.2g} from those in float32"


def _outputs(model: ImportedModel, target: TargetSpec, values: Sequence[Array]) -> Sequence[Array]:
    return build_model(lower(model, target), {}, guess=True).open_here().run(values)
