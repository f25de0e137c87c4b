"""Models of this process, imported and lowered to kernels."""

import sys
from collections.abc import Sequence
from dataclasses import replace

from tuneloom.backends.base import PLAIN, USUAL
from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import InputError, ModelError, reason_of
from tuneloom.model import CALIBRATED, TF32_TYPES, ModelRecipe, Shapes
from tuneloom.tuners.tvm.importing.onnx.graphs import Trial
from tuneloom.tuners.tvm.importing.sources import ImportedModel, import_model
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, LowerOptions, lower, lowered_module
from tuneloom.tuners.tvm.models.compiling.tolerances import tolerance_for
from tuneloom.tuners.tvm.models.making.made import MODELS, source_of
from tuneloom.tuners.tvm.models.precision.calibrating import Quantising, quantise
from tuneloom.tuners.tvm.models.precision.halving import halve, in_type, moved
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs, values_for

SPARE = 2.0
"""How much further off than all samples together a single one may be."""


def imported_model(
    source: str, shapes: Shapes, *, only_tvm: bool = False, left: Sequence[str] = ()
) -> ImportedModel:
    """A model as its file has it, imported once in this process; raises InputError if it can't be."""
    if sys.modules.get("torch", sys) is None:
        del sys.modules["torch"]  # hidden while the worker was prepared; this file may need it
    return MODELS.imported(
        source_of(source, shapes, only_tvm, left),
        lambda: import_model(source, shapes, only_tvm=only_tvm, left=left),
    )


def lowered_model(recipe: ModelRecipe) -> LoweredModel:
    """The model as kernels; raises InputError if it can't be imported."""
    made = MODELS.of(recipe)
    if made.lowered is None or made.layout != recipe.layout:
        made.lowered, made.layout = lowered_in(recipe, recipe.layout), recipe.layout
    return made.lowered


def lowered_in(recipe: ModelRecipe, layout: str) -> LoweredModel:
    """The model lowered in a layout, imported if it was not before; raises InputError if it can't be."""
    spec, options = resolve_target(recipe.target, cores=recipe.cores), LowerOptions(layout=layout)
    if layout not in (USUAL, PLAIN):
        backend_of(spec).require_layout(layout, spec)
    model = imported_model(recipe.source, recipe.shapes, only_tvm=recipe.only_tvm, left=recipe.left)
    if recipe.dtype not in ("float32", *TF32_TYPES) and layout != PLAIN:
        return lower(_quantised(recipe, model, spec), spec, options)
    dtype = "float32" if layout == PLAIN else recipe.dtype
    if dtype != "float32":
        backend_of(spec).require_dtype(dtype, spec)
    try:
        return lower(_rounding(model, dtype), spec, options)
    except Exception as error:
        found = _tried(recipe, lambda module: lowered_module(module, spec, options, dtype))
        if [part.content for part in found.foreign] == [part.content for part in model.foreign]:
            reason = reason_of(error)
            raise ModelError(f"{model.name}: TVM can't compile this model: {reason}") from error
        return lower(_rounding(found, dtype), spec, options)


def _rounding(model: ImportedModel, dtype: str) -> ImportedModel:
    """The model with TF32 where the type has it."""
    return model if dtype == "float32" else in_type(model, dtype)


def _tried(recipe: ModelRecipe, trial: Trial) -> ImportedModel:
    """The model without nodes that are imported but can't be compiled: each is tried, which takes time."""
    found = import_model(
        recipe.source, recipe.shapes, only_tvm=recipe.only_tvm, left=recipe.left, trial=trial
    )
    MODELS.replace_import(source_of(recipe.source, recipe.shapes, recipe.only_tvm, recipe.left), found)
    return found


def _quantised(recipe: ModelRecipe, model: ImportedModel, target: TargetSpec) -> ImportedModel:
    """The model in the type that was asked for; a note tells how far its outputs are off.

    On hardware that only its own process may use, that is found out there.
    """
    if recipe.dtype in CALIBRATED:
        made = MODELS.of(recipe)
        if made.quantised is None:
            how = Quantising(dtype=recipe.dtype, samples=recipe.samples, tolerance=recipe.tolerance)
            found = quantise(model, target, how)
            made.quantised = replace(found.model, notes=(*model.notes, found.note))
        return made.quantised
    if not backend_of(target).on_host:
        return in_type(model, recipe.dtype)
    return halve(model, target, seeded_inputs(model.inputs, seed=0), recipe.tolerance, recipe.dtype)


def moved_outputs(recipe: ModelRecipe) -> str | InputError:
    """How far the type of a model moves its outputs, in words, or why that is too far.

    Runs where the device is.
    """
    model = imported_model(recipe.source, recipe.shapes, only_tvm=recipe.only_tvm, left=recipe.left)
    target = resolve_target(recipe.target)
    try:
        values = values_for(recipe, model.inputs, seed=0)
        return moved(_quantised(recipe, model, target), model, target, values, recipe.tolerance)
    except InputError as error:
        return error


def tolerance_of(recipe: ModelRecipe) -> float:
    """How far the outputs of a tuned model may be from those of the untuned one."""
    if recipe.dtype != "float32":
        return SPARE * recipe.tolerance
    return tolerance_for(lowered_model(recipe).module)
