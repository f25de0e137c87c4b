"""What each call of a running model takes."""

import time
from collections.abc import Sequence
from typing import Any

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.tuners.tvm.models.compiling.compiled import CompiledModel
from tuneloom.tuners.tvm.models.compiling.running import Array, RunningModel

_RUNS, _LONG_S = 3, 0.1
"""Runs that count; a single one of those that take so long."""


def kernel_times(model: RunningModel, values: Sequence[Array]) -> dict[str, float]:
    """Seconds of every kernel of a model, by name, from its least disturbed run."""
    tensors = [load_tvm().runtime.tensor(value, model.device) for value in values]
    begun = time.perf_counter()
    model.invoke(tensors)
    model.device.sync()
    runs = 1 if time.perf_counter() - begun > _LONG_S else _RUNS
    best: dict[str, float] = {}
    started: list[float] = []

    def instrument(_function: Any, name: Any, before: Any, _result: Any, *_arguments: Any) -> int:
        model.device.sync()
        if before:
            started.append(model.now())
        else:
            taken = model.now() - started.pop()
            best[str(name)] = min(taken, best.get(str(name), taken))
        return 0

    model.watch(instrument)
    for _ in range(runs):
        model.invoke(tensors)
    return best


def foreign_shares(model: CompiledModel, values: list[Array]) -> dict[str, float]:
    """Which share of a model's time each part takes that ONNX Runtime runs; copies count as the part's."""
    if not model.foreign:
        return {}
    if model.foreign[0].whole:
        return {model.foreign[0].function: 1.0}
    times = kernel_times(model.open_here(), values)
    total = sum(times.values())
    return {part.function: times.get(part.function, 0.0) / total for part in model.foreign}
