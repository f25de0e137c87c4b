"""Opening the models of tuners that name their tasks themselves; runs in a worker."""

import hashlib

from tuneloom.errors import InputError, ModelError
from tuneloom.model import ModelRecipe, ModelSummary, Task, TaskSource
from tuneloom.tuners.stages import tuner_named


def open_tasks(tuner: str, recipe: ModelRecipe) -> ModelSummary | InputError:
    """The tasks of a model; one that can't be used is a value."""
    try:
        tasks = tasks_of(tuner, recipe.source)
    except InputError as error:
        return error
    return ModelSummary(
        name=recipe.source.partition(":")[0] or tuner,
        digest=hashlib.sha256(recipe.source.encode()).hexdigest(),
        target=recipe.target,
        family=tuner,
        tasks=tasks,
    )


def refusal(tuner: str, model: str) -> InputError | None:
    """Why a tuner can't take a model; None if it can."""
    try:
        tasks_of(tuner, model)
    except InputError as error:
        return error
    return None


def tasks_of(tuner: str, model: str) -> tuple[Task, ...]:
    """What the tuner finds in the text after its name; raises InputError if that is nothing."""
    found = tuner_named(tuner)
    if not isinstance(found, TaskSource):
        raise InputError(
            f"tuner {tuner!r} can't be used by `tuneloom tune`: it has no method tasks(model)", field="tuner"
        )
    tasks = tuple(found.tasks(model.removeprefix(f"{tuner}:")))
    if not tasks:
        raise ModelError(f"{model}: tuner {tuner!r} finds nothing to tune in it")
    if len({task.key for task in tasks}) < len(tasks):
        raise ModelError(f"{model}: tuner {tuner!r} gives two tasks the same key")
    return tasks
