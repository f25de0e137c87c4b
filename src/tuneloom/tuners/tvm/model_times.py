"""What each kernel takes inside the running model: caches are as its neighbours leave them."""

import time
from collections.abc import Sequence
from typing import Any

from tuneloom.tuners.tvm import model_stages
from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.final import Array, RunningModel
from tuneloom.tuners.tvm.tasks import kernel_calls, kernel_key

_RUNS = 5
_NOISE = 1.05  # slower by less than this may be chance


def slower_in_model(key: str, tasks: Sequence[str], seed: int, device: str) -> list[str]:
    """Of these tasks, those whose tuned kernel is slower in the model than the untuned one."""
    lowered = model_stages._models[key]
    values = model_stages.seeded_inputs(lowered.inputs, seed)
    tuned = kernel_times(model_stages._tuned[key].open(device), values)
    plain = kernel_times(model_stages._plain[key].open(device), values)
    names: dict[str, list[str]] = {}
    for name in kernel_calls(lowered.module):
        names.setdefault(kernel_key(lowered.module[name], lowered.target), []).append(name)

    def total(times: dict[str, float], task: str) -> float:
        return sum(times.get(name, 0.0) for name in names.get(task, ()))

    return [task for task in tasks if total(tuned, task) > _NOISE * total(plain, task) > 0]


def kernel_times(model: RunningModel, values: Sequence[Array]) -> dict[str, float]:
    """Seconds of every kernel of a model, by name, from its least disturbed run."""
    tensors = [load_tvm().runtime.tensor(value, model.device) for value in values]
    model.invoke(tensors)
    best: dict[str, float] = {}
    started: list[float] = []

    def instrument(_function: Any, name: Any, before: Any, _result: Any, *_arguments: Any) -> int:
        model.device.sync()
        if before:
            started.append(time.perf_counter())
        else:
            taken = time.perf_counter() - started.pop()
            best[str(name)] = min(taken, best.get(str(name), taken))
        return 0

    model.watch(instrument)
    for _ in range(_RUNS):
        model.invoke(tensors)
    return best
