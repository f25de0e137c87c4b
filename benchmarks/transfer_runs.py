"""Runs that the benchmarks of reuse are made of, and how their progress is read from the store.

Plain runs (every task on its own) are the opponents of both sharing and transfer. They take
the most time, so they are kept in a folder, store and bundle, and made only once.
"""

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import from_nothing  # noqa: F401
from tuneloom.app.bundles.models import list_tasks
from tuneloom.app.evaluating import evaluate_bundle
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.model import Budget, JobSpec
from tuneloom.store import Store, TrialRecord, open_store

ROUNDS = 5
TRIALS_A_MINUTE = 200  # on the quiet two-core machine that the recorded results come from
MINUTES_AROUND = 1.0  # import, compile and check of one run


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One tuning run: what it spent and what came of it.

    `tuning_s` counts from the end of the import to the last trial, planning included;
    `total_s` is everything. `kernels_s` is the sum of the chosen kernels as the contests at
    the end timed them. `curve` has [seconds of tuning, sum of the best times so far].
    """

    model: str
    reuse: str
    run: str
    job: str
    budget: int
    trials: int
    tuning_s: float
    total_s: float
    before_s: float
    after_s: float
    kernels_s: float
    load: float
    curve: Sequence[Sequence[float]]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def tuned(model: str, reuse: str, trials: int, store: Path, *, out: Path | None = None, seed: int = 0) -> Run:
    """Tune a model of the zoo and read what happened."""
    spec = JobSpec(
        name=model,
        model=f"zoo:{model}",
        budget=Budget(trials=trials),
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
        weights = {planned.task.key: planned.task.weight for planned in opened.tasks(job.id)}
        tuning_s, curve = progress(opened, outcome.run, job.id, weights)
    finally:
        opened.close()
    return Run(
        model=model,
        reuse=reuse,
        run=outcome.run,
        job=job.id,
        budget=trials,
        trials=int(job.result["trials"]),
        tuning_s=tuning_s,
        total_s=total_s,
        before_s=float(job.result["latency_before_s"]),
        after_s=float(job.result["latency_after_s"]),
        kernels_s=sum(w * (job.result["kernels"][key]["after_s"] or 0.0) for key, w in weights.items()),
        load=load,
        curve=curve,
    )


def plain(model: str, trials_per_task: int, seed: int, folder: Path) -> Run:
    """The plain run of a model, made unless the folder has it; its store is at `plain_store`."""
    place = plain_store(model, trials_per_task, seed, folder)
    kept = place.with_suffix(".json")
    if not kept.exists():
        place.unlink(missing_ok=True)
        trials = trials_per_task * count_tasks(model, folder)
        run = tuned(model, "off", trials, place, out=place.with_suffix(".bundle"), seed=seed)
        kept.write_text(json.dumps(run.to_json()) + "\n")
    return Run(**json.loads(kept.read_text()))


def plain_store(model: str, trials_per_task: int, seed: int, folder: Path) -> Path:
    return folder / f"plain-{model}-{trials_per_task}-{seed}.db"


def count_tasks(model: str, folder: Path) -> int:
    """How many kernels a model has to tune."""
    empty = str(folder / "empty.db")
    open_store(empty).close()
    return len(list_tasks(f"zoo:{model}", "cpu", [{}], empty))


def tuning_times(store: Store, run: str, records: Sequence[TrialRecord]) -> tuple[float, list[float]]:
    """How long tuning took after the import, and when in that time each trial was committed.

    Stages are timed by the run's own clock and trials by the store's: the last stage and
    the last trial, which follow each other at once, say how the clocks differ.
    """
    spans = store.spans(run)
    opened_s = min(span.end_s for span in spans if span.kind == "initialise")
    ended_s = max(span.end_s for span in spans if span.kind in ("build", "profile"))
    zero = max(record.created for record in records) - ended_s
    return ended_s - opened_s, [max(0.0, record.created - zero - opened_s) for record in records]


def progress(
    store: Store, run: str, job: str, weights: Mapping[str, int]
) -> tuple[float, list[tuple[float, float]]]:
    """How long tuning took, and the sum of the kernels' best times at every improvement.

    The curve begins when every kernel has a time.
    """
    records = store.trials(job)
    tuning_s, times = tuning_times(store, run, records)
    best: dict[str, float] = {}
    curve: list[tuple[float, float]] = []
    for at_s, record in sorted(zip(times, records, strict=True), key=lambda pair: pair[0]):
        if record.seconds is not None and record.seconds < best.get(record.task_key, float("inf")):
            best[record.task_key] = record.seconds
            if len(best) == len(weights):
                curve.append((at_s, sum(weight * best[key] for key, weight in weights.items())))
    return tuning_s, curve


def in_turn(bundles: Mapping[str, Path], rounds: int = ROUNDS) -> dict[str, float]:
    """Median latencies of bundles timed one after the other, several rounds, so that drift hits all."""
    times: dict[str, list[float]] = {name: [] for name in bundles}
    for _ in range(rounds):
        for name, folder in bundles.items():
            times[name].append(float(evaluate_bundle(folder, 1.0)["low_s"]))
    return {name: median(values) for name, values in times.items()}


def rows_of(path: Path) -> dict[str, dict[str, Any]]:
    """Recorded results by model."""
    return {row["model"]: row for row in json.loads(path.read_text())} if path.exists() else {}


def keep(path: Path, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Record results; called after every model, so that an interruption loses one at most."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(list(rows.values()), indent=1) + "\n")


def told_cost(trials: float, runs: int, more_minutes: float = 0.0) -> str:
    """What a benchmark is about to cost."""
    minutes = trials / TRIALS_A_MINUTE + runs * MINUTES_AROUND + more_minutes
    pace = f"{minutes:.0f} minutes at {TRIALS_A_MINUTE} trials a minute"
    return f"about {trials:.0f} trials in {runs} runs: {pace}"
