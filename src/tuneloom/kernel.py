"""Tuning hand-written kernels, the short way in.

from tuneloom.kernel import Space, tune_kernel

space = Space({"block": [16, 32, 64], "tile": range(1, 9)}, where=["block * tile <= 256"])
result = tune_kernel(space, build=compile_it, run=time_it, check=reference, trials=200)
print(result.best, result.seconds)
"""

from typing import Any

from tuneloom.app.runs.executing.kernel_runs import KernelResult, Plan, TrialListener, tune_functions
from tuneloom.app.runs.settings import RunSettings
from tuneloom.model import Budget, MeasuringRules
from tuneloom.model.fields import COUNT
from tuneloom.tuners.kernel.kernel import Build, Built, Kernel, Ran, Run, WrongResult
from tuneloom.tuners.kernel.languages.arguments import Array, Number
from tuneloom.tuners.kernel.languages.c import CBuilder, CReference, CRunner
from tuneloom.tuners.kernel.languages.cuda import CudaBuilder, CudaRunner
from tuneloom.tuners.kernel.languages.triton import TritonKernel
from tuneloom.tuners.kernel.space import Space

__all__ = [
    "Array",
    "Built",
    "CBuilder",
    "CReference",
    "CRunner",
    "CudaBuilder",
    "CudaRunner",
    "Kernel",
    "KernelResult",
    "Number",
    "Plan",
    "Ran",
    "Space",
    "TritonKernel",
    "WrongResult",
    "tune",
    "tune_kernel",
]


def tune_kernel(
    space: Space,
    build: Build,
    run: Run,
    check: Any = None,
    *,
    trials: int = 200,
    seconds: float | None = None,
    seed: int = 0,
    search: str = "guided",
    init: str = "validity",
    name: str = "kernel",
    device: str = "",
    build_timeout_s: float = 30.0,
    run_timeout_s: float = 10.0,
    listener: TrialListener | None = None,
    store: str | None = None,
) -> KernelResult:
    """Find the fastest configuration of a space whose result is right.

    `build` and `run` are called in other processes: what raises, crashes, hangs or
    floods the output costs one trial. The run is kept in the store like any other.
    Raises SpaceError or BudgetError for input that makes no sense, TargetError for a
    device that is not here and NothingMeasured if no configuration worked.
    """
    COUNT.require("trials", trials)
    rules = MeasuringRules(build_timeout_s=build_timeout_s, run_timeout_s=run_timeout_s)
    plan = Plan(
        budget=Budget(trials=trials, seconds=seconds), seed=seed, search=search, init=init, measuring=rules
    )
    return tune(Kernel(name, space, build, run, check, device), plan, listener, store=store)


def tune(
    kernel: Kernel,
    plan: Plan,
    listener: TrialListener | None = None,
    *,
    store: str | None = None,
    device_cores: int = 1,
) -> KernelResult:
    """Tune a kernel until its budget, its goal or its space is spent; `listener` hears of every trial.

    Raises NothingMeasured, with the commonest failure, if no configuration worked.
    """
    return tune_functions(kernel, plan, RunSettings(store=store, device_cores=device_cores), listener)
