"""What happens to a whole model in a worker: imported first, compiled and checked last.

The model stays in the process that opened it, so it is imported once per job.
"""

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import InputError, ModelError, OutputError, reason_of
from tuneloom.model import (
    CheckResult,
    ModelRecipe,
    ModelSummary,
    Shapes,
    ShapeVariant,
    Task,
    TensorInfo,
)
from tuneloom.tuners.tvm.boards.bench import board_session
from tuneloom.tuners.tvm.importing.onnx.cutting import ALL
from tuneloom.tuners.tvm.importing.onnx.graphs import Trial
from tuneloom.tuners.tvm.importing.sources import ImportedModel, import_model
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, LowerOptions, lower, lowered_module
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE
from tuneloom.tuners.tvm.lowering.tasks import extract, kernel_calls
from tuneloom.tuners.tvm.measuring.canary import canary_payload
from tuneloom.tuners.tvm.measuring.profiling import random_values
from tuneloom.tuners.tvm.models.calibrating import Quantising, quantise
from tuneloom.tuners.tvm.models.differences import relative_difference
from tuneloom.tuners.tvm.models.facts import target_facts
from tuneloom.tuners.tvm.models.final import (
    Array,
    CompiledModel,
    OpenModel,
    build_model,
    build_plain,
    part_file,
)
from tuneloom.tuners.tvm.models.halving import halve
from tuneloom.tuners.tvm.models.kernel_times import foreign_shares
from tuneloom.tuners.tvm.models.own_runtime import against_own_runtime
from tuneloom.tuners.tvm.models.remembering import keep, recall
from tuneloom.tuners.tvm.models.samples import read_samples
from tuneloom.tuners.tvm.models.shapes import added, export_all
from tuneloom.tuners.tvm.models.tolerances import tolerance_for

_imported: dict[tuple[str, str], ImportedModel] = {}
_models: dict[str, LoweredModel] = {}
_tuned: dict[str, CompiledModel] = {}
_schedules: dict[str, dict[str, str]] = {}
_plain: dict[str, CompiledModel] = {}
SPARE = 2.0
"""How much further off than all samples together a single one may be."""
_TIMING_S = 1.0
_LONG_S = 4.0
_MOST_RUNS = 300


def open_model(recipe: ModelRecipe) -> ModelSummary | InputError:
    """Import a model and find its kernels; a model that can't be used is a value.

    Under several sets of shapes it has the kernels of all of them, each once. If all that was kept when
    it was opened before, the model is imported only when it is to be compiled.
    """
    known = recall(recipe)
    if known is not None:
        return known
    try:
        all_lowered = [lowered_model(variant) for variant in recipe.variants()]
    except InputError as error:
        return error
    summary = _summary(all_lowered)
    if not summary.tasks:
        return ModelError(f"{recipe.source}: {_nothing(summary)}")
    keep(recipe, summary)
    return summary


def _nothing(summary: ModelSummary) -> str:
    """Why there is nothing to tune in a model."""
    others = sorted({kind for part in summary.foreign for kind in part["operators"]})
    if not others:
        return "it only passes values on, so there is nothing to tune"
    return f"TVM takes nothing of it ({', '.join(others)}), so there is nothing to tune; use its own runtime"


def _summary(all_lowered: Sequence[LoweredModel]) -> ModelSummary:
    lowered = all_lowered[0]
    return ModelSummary(
        name=lowered.name,
        digest="+".join(one.digest for one in all_lowered),
        target=lowered.target.text,
        family=lowered.target.family,
        tvm_version=str(load_tvm().__version__),
        tasks=tuple(merged([extract(one) for one in all_lowered])),
        inputs=lowered.inputs,
        outputs=lowered.outputs,
        canary=canary_payload(lowered.target),
        facts=target_facts(lowered.target, kernel_calls(lowered.module)),
        notes=tuple(dict.fromkeys(note for one in all_lowered for note in one.notes)),
        foreign=foreign_entries(lowered),
        variants=tuple(
            ShapeVariant(inputs=one.inputs, outputs=one.outputs, foreign=foreign_entries(one))
            for one in all_lowered[1:]
        ),
    )


def foreign_entries(lowered: LoweredModel) -> tuple[dict[str, Any], ...]:
    """How a bundle tells of the parts that ONNX Runtime runs."""
    return tuple(
        {
            "function": part.function,
            "file": part_file(number, part.runtime),
            "operators": list(part.operators),
            **({"whole": True} if part.whole else {}),
        }
        for number, part in enumerate(lowered.foreign)
    )


def merged(lists: Sequence[Sequence[Task]]) -> list[Task]:
    """Tasks of several variants of a model, each once, with how often all of them together run it."""
    found: dict[str, Task] = {}
    for task in (task for tasks in lists for task in tasks):
        known = found.get(task.key)
        found[task.key] = task if known is None else replace(known, weight=known.weight + task.weight)
    return list(found.values())


def compile_model(recipe: ModelRecipe, schedules: dict[str, str]) -> dict[str, str]:
    """Compile the model with its schedules, and as it came in unless that was done.

    Kernels nobody tuned get the first guess of their template. Returns which tasks have neither, because
    TVM can't compile it, and why.
    """
    failed: dict[str, str] = {}
    for variant in recipe.variants():
        _compile_tuned(variant, schedules)
        failed |= _tuned[variant.key].unscheduled
    compile_plain(recipe)
    return failed


def _compile_tuned(recipe: ModelRecipe, schedules: dict[str, str]) -> None:
    lowered = lowered_model(recipe)
    _tuned[recipe.key] = build_model(lowered, schedules, guess=True)
    _schedules[recipe.key] = dict(schedules)


def compile_plain(recipe: ModelRecipe) -> None:
    """Compile the model as it came in, to compare the tuned one with.

    It keeps its layout and loops, so that it shares no rewriting with the tuned one.
    """
    variants = recipe.variants()
    for variant in variants:
        if variant.key not in _plain:
            _plain[variant.key] = build_plain(_import(variant, "plain"))
    if all(variant.key in _models for variant in variants):
        _imported.clear()  # nothing is made of it any more


def lowered_model(recipe: ModelRecipe) -> LoweredModel:
    """The model as kernels; raises InputError if it can't be imported."""
    if recipe.key not in _models:
        _models[recipe.key] = _import(recipe, recipe.layout)
    return _models[recipe.key]


def _import(recipe: ModelRecipe, layout: str) -> LoweredModel:
    spec, options = resolve_target(recipe.target, cores=recipe.cores), LowerOptions(layout=layout)
    model = imported_model(recipe.source, recipe.shapes, only_tvm=recipe.only_tvm, left=recipe.left)
    if recipe.dtype != "float32" and layout != "plain" and recipe.left != ALL:
        return lower(_quantised(recipe, model, spec), spec, options)
    try:
        return lower(model, spec, options)
    except Exception as error:
        found = _tried(recipe, lambda module: lowered_module(module, spec, options))
        if [part.content for part in found.foreign] == [part.content for part in model.foreign]:
            reason = reason_of(error)
            raise ModelError(f"{model.name}: TVM can't compile this model: {reason}") from error
        return lower(found, spec, options)


def _tried(recipe: ModelRecipe, trial: Trial) -> ImportedModel:
    """The model without nodes that are imported but can't be compiled: each is tried, which takes time."""
    found = import_model(
        recipe.source, recipe.shapes, only_tvm=recipe.only_tvm, left=recipe.left, trial=trial
    )
    _imported[_asked(recipe.source, recipe.shapes, recipe.only_tvm, recipe.left)] = found
    return found


def _quantised(recipe: ModelRecipe, model: ImportedModel, target: TargetSpec) -> ImportedModel:
    """The model in the type that was asked for; a note tells how far its outputs are off."""
    if recipe.dtype == "bfloat16":
        return halve(model, target, seeded_inputs(model.inputs, seed=0), recipe.tolerance)
    how = Quantising(samples=recipe.samples, tolerance=recipe.tolerance)
    found = quantise(model, target, how)
    return replace(found.model, notes=(*model.notes, found.note))


def forget(recipe: ModelRecipe) -> None:
    """Drop what was made of a model, under all its sets of shapes."""
    for variant in recipe.variants():
        for kept in (_models, _tuned, _schedules, _plain):
            kept.pop(variant.key, None)


def imported_model(
    source: str, shapes: Shapes, *, only_tvm: bool = False, left: Sequence[str] = ()
) -> ImportedModel:
    """A model as its file has it, imported once in this process; raises InputError if it can't be."""
    if sys.modules.get("torch", sys) is None:
        del sys.modules["torch"]  # hidden while the worker was prepared; this file may need it
    asked = _asked(source, shapes, only_tvm, left)
    if asked not in _imported:
        _imported[asked] = import_model(source, shapes, only_tvm=only_tvm, left=left)
    return _imported[asked]


def _asked(source: str, shapes: Shapes, only_tvm: bool, left: Sequence[str]) -> tuple[str, str]:
    return source, repr((dict(shapes), only_tvm, tuple(left)))


def tuned_model(recipe: ModelRecipe, schedules: dict[str, str]) -> CompiledModel:
    """The model compiled with these schedules; compiled here and now if another process did it so far.

    The device may belong to another machine than the one that compiled the model.
    """
    if _schedules.get(recipe.key) != schedules:
        _compile_tuned(recipe, schedules)
    return _tuned[recipe.key]


def check_model(recipe: ModelRecipe, schedules: dict[str, str], seed: int) -> CheckResult:
    """Run both on seeded inputs, compare, and time them in turn; once under each set of shapes."""
    return added([_check(variant, schedules, seed) for variant in recipe.variants()])


def _check(recipe: ModelRecipe, schedules: dict[str, str], seed: int) -> CheckResult:
    key = recipe.key
    tuned_model(recipe, schedules)
    compile_plain(recipe)
    tuned, plain = _tuned[key].open(), _plain[key].open()
    values = values_for(recipe, _models[key].inputs, seed)
    started = time.perf_counter()
    expected = plain.run(values)
    first_s, got = time.perf_counter() - started, tuned.run(values)
    difference = max(relative_difference(a, b) for a, b in zip(got, expected, strict=True))
    tuned_s, untuned_s = time_in_turn(tuned, plain, values, first_s)
    # A board or a GPU is not what the own runtime would run on here.
    here = backend_of(_models[key].target).on_host and board_session() is None
    own = against_own_runtime(recipe, _tuned[key], tuned, values, _TIMING_S) if here else ""
    return CheckResult(
        difference=difference,
        tolerance=tolerance_of(recipe),
        tuned_s=tuned_s,
        untuned_s=untuned_s,
        foreign_shares=foreign_shares(_tuned[key], values),
        own_runtime=None if isinstance(own, str) else own,
        uncompared=own if isinstance(own, str) else "",
    )


def guilty_kernels(recipe: ModelRecipe, schedules: dict[str, str], seed: int) -> list[str]:
    """Which schedules change the model's outputs, found by compiling with each alone."""
    found = [_guilty(variant, schedules, seed) for variant in recipe.variants()]
    return list(dict.fromkeys(task for tasks in found for task in tasks))


def _guilty(recipe: ModelRecipe, schedules: dict[str, str], seed: int) -> list[str]:
    lowered = lowered_model(recipe)
    values = values_for(recipe, lowered.inputs, seed)
    expected = build_model(lowered, {}).open().run(values)
    guilty = []
    for task, trace in schedules.items():
        if trace == NO_TRACE:
            continue
        got = build_model(lowered, {task: trace}).open().run(values)
        if max(relative_difference(a, b) for a, b in zip(got, expected, strict=True)) > tolerance_of(recipe):
            guilty.append(task)
    return guilty


def export_model(recipe: ModelRecipe, schedules: dict[str, str], folder: str) -> OutputError | None:
    """Write the compiled model and its parameters into an existing folder; a full disk is a value."""
    models = [tuned_model(variant, schedules) for variant in recipe.variants()]
    try:
        export_all(models, Path(folder))
    except (OSError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        return OutputError(f"can't write {folder}: {reason}; free some space or choose another --out")
    return None


def values_for(recipe: ModelRecipe, inputs: tuple[TensorInfo, ...], seed: int) -> list[Array]:
    """What a model is checked and timed with: seeded values, or a sample where precision is lower.

    Values that were not calibrated for would tell nothing about the outputs.
    """
    if not recipe.samples:
        return seeded_inputs(inputs, seed)
    return read_samples(recipe.samples, inputs)[0]


def tolerance_of(recipe: ModelRecipe) -> float:
    """How far the outputs of a tuned model may be from those of the untuned one."""
    if recipe.dtype != "float32":
        return SPARE * recipe.tolerance
    return tolerance_for(lowered_model(recipe).module)


def seeded_inputs(inputs: tuple[TensorInfo, ...], seed: int) -> list[Array]:
    """The same values for the same seed, for every input of the model."""
    random = np.random.default_rng(seed)
    return [random_values(random, info.dtype, info.shape) for info in inputs]


def time_in_turn(
    tuned: OpenModel, plain: OpenModel, values: list[Array], first_s: float
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Runs of both models, one after the other, for about a second each; of the tuned one at least three.

    A plain model whose first run took many seconds is not run again.
    """
    timers = (tuned.timer(values), plain.timer(values))
    long = first_s > _LONG_S
    times: tuple[list[float], list[float]] = ([], [first_s] if long else [])
    ended = [False, long]
    while not all(ended):
        for n, timer in enumerate(timers):
            if not ended[n]:
                times[n].append(timer())
                ended[n] = _timed_enough(times[n], least=1 if n else 3)
    return tuple(times[0]), tuple(times[1])


def _timed_enough(times: list[float], least: int) -> bool:
    return len(times) >= _MOST_RUNS or (len(times) >= least and sum(times) > _TIMING_S)
