"""Runs that tune one kernel: given as Python functions, or described in a file."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tuneloom.app.kinds.kernel.specs import kernel_spec
from tuneloom.app.runs.executing.in_process import RunOutcome, tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.model import Budget, Failure, FailureKind, JobSpec, MeasuringRules, Trial
from tuneloom.store import default_place, open_store
from tuneloom.tuners.kernel.kernel import Kernel
from tuneloom.tuners.kernel.opening import keep_functions

TrialListener = Callable[[Trial], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a kernel is tuned; the defaults need no choosing.

    `spare` is how many more candidates are built than run, so that what the compiler
    reveals can decide which of them run; 0 leaves that out. `presample` builds around
    valid points before anything runs, as long as that pays.
    """

    budget: Budget
    seed: int = 0
    search: str = "guided"
    init: str = "validity"
    spare: int = 0
    presample: bool = False
    measuring: MeasuringRules = field(default_factory=MeasuringRules)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResult:
    """What tuning found; every trial is kept, `built_only` were built but never run.

    `relevance` is how strongly the time depends on each knob, as shares of one; empty
    for a search that has no model. `run` names the run in the store.
    """

    best: dict[str, Any]
    seconds: float
    trials: tuple[Trial, ...]
    elapsed_s: float
    presampling_s: float = 0.0
    built_only: int = 0
    relevance: dict[str, float] = field(default_factory=dict)
    run: str = ""

    @property
    def failures(self) -> Counter[FailureKind]:
        """How often each kind of failure happened."""
        outcomes = (trial.outcome for trial in self.trials)
        return Counter(outcome.kind for outcome in outcomes if isinstance(outcome, Failure))


def tune_functions(
    kernel: Kernel, plan: Plan, settings: RunSettings, listener: TrialListener | None = None
) -> KernelResult:
    """Tune a kernel given as functions until its budget, its goal or its space is spent.

    Its functions are kept in a file for as long as the run goes on or may be resumed.
    Raises NothingMeasured, with the commonest failure, if no configuration worked.
    """
    path = keep_functions(kernel, _folder(settings.store))
    began = time.perf_counter()
    outcome = tune(
        [_planned(kernel, plan, path)],
        settings,
        f"tune_kernel {kernel.name}",
        on_trial=None if listener is None else lambda _job, trial: listener(trial),
    )
    if outcome.failure is not None:
        raise outcome.failure
    return result_of(outcome, settings.store, time.perf_counter() - began)


def result_of(outcome: RunOutcome, place: str | None, elapsed_s: float) -> KernelResult:
    """What a run of one kernel found, as the store has it."""
    job = outcome.jobs[0]
    with open_store(place) as store:
        trials = tuple(record.trial for record in store.trials(job.id))
    result = job.result
    return KernelResult(
        best=dict(result["best"]),
        seconds=result["best_s"],
        trials=trials,
        elapsed_s=elapsed_s,
        presampling_s=result["presampling_s"],
        built_only=result["built_only"],
        relevance=dict(result.get("validity", {}).get("importance", {})),
        run=outcome.run,
    )


def _planned(kernel: Kernel, plan: Plan, path: Path) -> JobSpec:
    values = {"search": plan.search, "init": plan.init, "spare": plan.spare, "presample": plan.presample}
    spec = kernel_spec(kernel.name, str(path), kernel.device_key, {**values, "seed": plan.seed})
    return replace(spec, budget=plan.budget, measuring=plan.measuring)


def _folder(store: str | None) -> Path:
    """Where kernels are kept: beside the store if that is a file."""
    place = Path(store) if store is not None and "://" not in store else default_place()
    return place.absolute().parent / "kernels"
