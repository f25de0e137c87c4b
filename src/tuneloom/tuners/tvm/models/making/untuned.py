"""One run of the untuned model, with which the outputs of the tuned one are compared."""

import time

from tuneloom.backends.finding import backend_of
from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.boards.bench import board_session
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel
from tuneloom.tuners.tvm.models.compiling.side_by_side import made_apart
from tuneloom.tuners.tvm.models.making.lowered import lowered_model
from tuneloom.tuners.tvm.models.making.made import MODELS, UntunedRun
from tuneloom.tuners.tvm.models.precision.samples import values_for


def run_untuned(recipe: ModelRecipe, model: CompiledModel, seed: int) -> UntunedRun:
    """Run it now, on the device of this process."""
    values = values_for(recipe, model.inputs, seed)
    opened = model.open()
    # On one core other work may have its turns meanwhile, so that only the time of this process counts.
    clock = time.process_time if may_run_ahead(recipe, model) else time.perf_counter
    started = clock()
    outputs = opened.run(values)
    return UntunedRun(seed=seed, outputs=outputs, seconds=clock() - started)


def run_ahead(recipe: ModelRecipe, model: CompiledModel, seed: int) -> None:
    """Run it once in a process of its own, if it needs nothing but one core, and keep what it gave.

    Nothing is kept of code that this machine can't run.
    """
    if may_run_ahead(recipe, model):
        MODELS.of(recipe).untuned = made_apart(lambda: run_untuned(recipe, model, seed))


def may_run_ahead(recipe: ModelRecipe, model: CompiledModel) -> bool:
    """Whether it runs beside other work as it does alone."""
    on_host = backend_of(lowered_model(recipe).target).on_host
    return on_host and recipe.cores == 1 and not model.foreign and board_session() is None


def untuned_run(recipe: ModelRecipe, model: CompiledModel, seed: int) -> UntunedRun:
    """The run that was made ahead, or one made now."""
    known = MODELS.of(recipe).untuned
    there = known is not None and known.seed == seed and board_session() is None
    return known if known is not None and there else run_untuned(recipe, model, seed)
