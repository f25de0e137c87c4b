"""A model opened in a worker: imported, lowered, and what the program needs to know of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tuneloom.backends.finding import backend_of
from tuneloom.compiler.fast_import import load_tvm, nothing_collected
from tuneloom.errors import InputError, ModelError
from tuneloom.model import ModelRecipe, ModelSummary, ShapeVariant, Task, TensorInfo
from tuneloom.tuners.tvm.lowering.graph import LoweredModel
from tuneloom.tuners.tvm.lowering.tasks import extract, kernel_calls
from tuneloom.tuners.tvm.measuring.canary import canary_payload
from tuneloom.tuners.tvm.models.compiling.compiled import foreign_entries
from tuneloom.tuners.tvm.models.compiling.facts import target_facts
from tuneloom.tuners.tvm.models.compiling.memory import activation_bytes
from tuneloom.tuners.tvm.models.compiling.parameters import weight_bytes
from tuneloom.tuners.tvm.models.layouts import possible_layouts
from tuneloom.tuners.tvm.models.making.lowered import lowered_model
from tuneloom.tuners.tvm.models.remembering import keep, recall, recall_layout
from tuneloom.tuners.tvm.models.sizes.probing import chosen_sizes


def open_model(recipe: ModelRecipe) -> ModelSummary | InputError:
    """Import a model and find its kernels; a model that can't be used is a value.

    Under several sets of shapes it has the kernels of all of them, each once. Where a dimension varies, the
    sizes it is compiled for are chosen now. If all that was kept when
    it was opened before, the model is imported only when it is to be compiled.
    """
    known: ModelSummary | InputError | None = recall(recipe)
    if known is None:
        with nothing_collected():
            known = _opened(recipe)
    if not isinstance(known, ModelSummary) or not known.layouts:
        return known
    return replace(known, chosen=recall_layout(recipe))


def _opened(asked: ModelRecipe) -> ModelSummary | InputError:
    recipe = asked
    try:
        sizes = chosen_sizes(recipe) if recipe.ranges else None
        recipe = recipe if sizes is None else recipe.at(sizes.programs)
        all_lowered = [lowered_model(variant) for variant in recipe.variants()]
        _require_memory(all_lowered)
    except InputError as error:
        return error
    try:
        summary = replace(_summary(all_lowered, paired(recipe, all_lowered[0])), sizes=sizes)
        _require_work(recipe, all_lowered)
    except InputError as error:
        return error
    if not summary.tasks:
        return ModelError(f"{recipe.source}: {_nothing(summary)}")
    keep(asked, summary)
    return summary


def _require_memory(all_lowered: Sequence[LoweredModel]) -> None:
    """Raise InputError if the device can't hold the weights, and what the largest variant computes."""
    first = all_lowered[0]
    needs = (weight_bytes(first.module["main"]), max(activation_bytes(one.module) for one in all_lowered))
    backend_of(first.target).require_memory(*needs, first.target)


def _require_work(recipe: ModelRecipe, all_lowered: Sequence[LoweredModel]) -> None:
    for one in all_lowered:
        names = [str(gvar.name_hint) for gvar in one.module.get_global_vars()]
        backend_of(one.target).require_kernels(recipe.source, names, one.target)


def _nothing(summary: ModelSummary) -> str:
    """Why there is nothing to tune in a model."""
    others = sorted({kind for part in summary.foreign for kind in part["operators"]})
    if not others:
        return "it only passes values on, so there is nothing to tune"
    return f"TVM takes nothing of it ({', '.join(others)}), so there is nothing to tune; use its own runtime"


def paired(recipe: ModelRecipe, model: LoweredModel) -> list[dict[str, Any]]:
    """The state that a user declared, which begins with zeros; raises ModelError for a pair that is none."""
    found = []
    for past, _, present in (pair.strip().partition("=") for pair in recipe.state.split(",") if recipe.state):
        source, goal = _tensor(model.inputs, "input", past), _tensor(model.outputs, "output", present)
        if (source.shape, source.dtype) != (goal.shape, goal.dtype):
            forms = f"{past!r} is {source.dtype} {source.shape}, {present!r} is {goal.dtype} {goal.shape}"
            raise ModelError(f"state {past}={present}: {forms}; give an output of the input's shape and type")
        found.append({"input": past, "output": present, "initial": 0})
    if found and recipe.more_shapes:
        raise ModelError("a model that keeps a state has one set of shapes; give each input one --shape")
    return found


def _tensor(tensors: Sequence[TensorInfo], kind: str, name: str) -> TensorInfo:
    for one in tensors:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in tensors)
    raise ModelError(f"state: there is no {kind} {name!r}; {kind}s: {known} (write --state INPUT=OUTPUT)")


def _summary(all_lowered: Sequence[LoweredModel], declared: Sequence[dict[str, Any]]) -> ModelSummary:
    lowered = all_lowered[0]
    return ModelSummary(
        name=lowered.name,
        digest="+".join(one.digest for one in all_lowered),
        target=lowered.target.text,
        family=lowered.target.family,
        relatives=lowered.target.relatives,
        layouts=possible_layouts(lowered),
        tvm_version=str(load_tvm().__version__),
        tasks=tuple(merged([extract(one) for one in all_lowered])),
        inputs=lowered.inputs,
        outputs=lowered.outputs,
        canary=canary_payload(lowered.target),
        facts=target_facts(lowered.target, kernel_calls(lowered.module)),
        notes=tuple(dict.fromkeys(note for one in all_lowered for note in one.notes)),
        foreign=foreign_entries(lowered.foreign),
        state=(*(kept.entry for kept in lowered.state), *declared),
        variants=tuple(
            ShapeVariant(inputs=one.inputs, outputs=one.outputs, foreign=foreign_entries(one.foreign))
            for one in all_lowered[1:]
        ),
    )


def merged(lists: Sequence[Sequence[Task]]) -> list[Task]:
    """Tasks of several variants of a model, each once, with how often all of them together run it."""
    found: dict[str, Task] = {}
    for task in (task for tasks in lists for task in tasks):
        known = found.get(task.key)
        found[task.key] = task if known is None else replace(known, weight=known.weight + task.weight)
    return list(found.values())
