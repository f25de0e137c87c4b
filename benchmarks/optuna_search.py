"""Optuna's sampler TPE on recorded spaces, with its options as shipped.

Knobs of numbers are integers in the order of their values, others are categories. What it
suggests outside a space that is no whole grid, or a second time, is told to it and costs no
evaluation; a failure is told as a pruned trial, which it takes for worse than any value.
"""

import warnings
from collections.abc import Sequence
from typing import Any, cast

from tuneloom.tuners.kernel.space import KnobValue
from tuneloom.tuners.replay.recording import Recording, Row

_IN_VAIN = 20  # suggestions for each evaluation after which a run ends


def optuna_visited(recording: Recording, seed: int, evaluations: int) -> list[Row]:
    """The distinct configurations that it evaluated, in order."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    allowed = {tuple(recording.space.configuration(p).values()) for p in recording.space.points()}
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    seen: dict[Row, None] = {}
    for _ in range(_IN_VAIN * evaluations):
        trial = study.ask()
        row = tuple(_suggested(trial, name, values) for name, values in recording.space.knobs.items())
        time_ms = recording.entry(row).time_ms if row in allowed else None
        if time_ms is None:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            study.tell(trial, time_ms)
        if row in allowed:
            seen[row] = None
        if len(seen) == evaluations:
            break
    return list(seen)


def _suggested(trial: Any, name: str, values: Sequence[KnobValue]) -> KnobValue:
    if any(isinstance(value, str | bool) for value in values):
        return cast(KnobValue, trial.suggest_categorical(name, list(values)))
    return values[int(trial.suggest_int(name, 0, len(values) - 1))]
