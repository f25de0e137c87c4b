"""How long stages may take that handle a whole model: a hang has to end, and with words.

The limits are generous: a stage that reaches one is not slow, it does not come back.
"""

from collections.abc import Sequence

from tuneloom.app.tasks.progress import TaskProgress

OPEN_S = 1800.0
"""Importing a model and finding its kernels."""
SEARCH_S = 1800.0
"""One selection or one lesson of a search."""
EXPORT_S = 1800.0
"""Writing a compiled model with its weights."""
_AT_LEAST_S = 300.0
_PER_TASK_S = 30.0
_SLOWER = 20  # than what its kernels took by themselves


def describe_s(tasks: int) -> float:
    """Limit for finding the spaces of so many tasks."""
    return _AT_LEAST_S + _PER_TASK_S * tasks


def compile_s(tasks: Sequence[TaskProgress]) -> float:
    """Limit for compiling a model once."""
    return max(_AT_LEAST_S + _PER_TASK_S * len(tasks), _SLOWER * built_s(tasks))


def check_s(tasks: Sequence[TaskProgress]) -> float:
    """Limit for running a model a few times, tuned and untuned."""
    return _AT_LEAST_S + _SLOWER * untuned_s(tasks)


def built_s(tasks: Sequence[TaskProgress]) -> float:
    """How long building a kernel for each task took: about what compiling the model will take."""
    artifacts = [c.artifact for t in tasks for c in (t.best[0] if t.best else t.default,) if c is not None]
    return sum(artifact.build_s for artifact in artifacts if artifact is not None)


def untuned_s(tasks: Sequence[TaskProgress]) -> float:
    """What the untuned model takes, as far as its kernels were measured."""
    times = [(t.task.weight, t.default.seconds if t.default else t.best_s) for t in tasks]
    return sum(weight * (seconds or 0.0) for weight, seconds in times)
