"""Runs that the benchmarks of reuse are made of, and how their progress is read from the store."""

import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tuneloom.app.models import evaluate_bundle
from tuneloom.app.tuning_service import RunSettings, tune
from tuneloom.model import Budget, JobSpec
from tuneloom.store import Store, open_store

ROUNDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One tuning run: what it spent and what came of it.

    `tuning_s` counts from the end of the import to the last trial, `total_s` everything.
    `curve` has [seconds of tuning, predicted latency of the model in seconds].
    """

    model: str
    reuse: str
    trials: int
    tuning_s: float
    total_s: float
    before_s: float
    after_s: float
    load: float
    curve: tuple[tuple[float, float], ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def kernels_s(self) -> float:
        """The model's latency as the sum of its kernels' best times."""
        return self.curve[-1][1]


def tuned(
    model: str,
    reuse: str,
    trials: int,
    store: Path,
    *,
    out: Path | None = None,
    seconds: float | None = None,
    seed: int = 0,
) -> Run:
    """Tune a model of the zoo and read what happened."""
    spec = JobSpec(
        name=model,
        model=f"zoo:{model}",
        budget=Budget(trials=trials, seconds=seconds),
        reuse=reuse,
        seed=seed,
        out=str(out) if out else None,
    )
    load, started = os.getloadavg()[0], time.perf_counter()
    outcome = tune([spec], RunSettings(store=str(store)), f"benchmark {model} {reuse}")
    total_s = time.perf_counter() - started
    if outcome.failure is not None:
        raise outcome.failure
    (job,) = outcome.jobs
    opened = open_store(store)
    try:
        tuning_s, curve = progress(opened, outcome.run, job.id)
    finally:
        opened.close()
    return Run(
        model=model,
        reuse=reuse,
        trials=int(job.result["trials"]),
        tuning_s=tuning_s,
        total_s=total_s,
        before_s=float(job.result["latency_before_s"]),
        after_s=float(job.result["latency_after_s"]),
        load=load,
        curve=curve,
    )


def progress(store: Store, run: str, job: str) -> tuple[float, tuple[tuple[float, float], ...]]:
    """How long tuning took, and the sum of the kernels' best times after every improvement."""
    spans = store.spans(run)
    started_s = min(span.end_s for span in spans if span.kind == "initialise")  # planning counts
    tuning_s = max(span.end_s for span in spans if span.kind in ("profile", "update")) - started_s
    began = store.run(run).created + started_s
    weights = {planned.task.key: planned.task.weight for planned in store.tasks(job)}
    records = [record for record in store.trials(job) if record.seconds is not None]
    best = {r.task_key: float(r.seconds or 0) for r in records if r.trial.candidate.origin == "default"}
    curve = [(0.0, _sum(weights, best))]
    for record in records:
        if record.seconds is not None and record.seconds < best.get(record.task_key, float("inf")):
            best[record.task_key] = record.seconds
            curve.append((max(0.0, record.created - began), _sum(weights, best)))
    return tuning_s, tuple(curve)


def _sum(weights: Mapping[str, int], best: Mapping[str, float]) -> float:
    return sum(weight * best.get(key, 0.0) for key, weight in weights.items())


def in_turn(bundles: Mapping[str, Path], rounds: int = ROUNDS) -> dict[str, float]:
    """Median latencies of bundles timed one after the other, several rounds, so that drift hits all."""
    times: dict[str, list[float]] = {name: [] for name in bundles}
    for _ in range(rounds):
        for name, folder in bundles.items():
            times[name].append(float(evaluate_bundle(folder, 1.0)["low_s"]))
    return {name: median(values) for name, values in times.items()}
