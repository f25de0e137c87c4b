"""Whole models on one core: tuned by us, untuned TVM, ONNX Runtime, in turn in one process.

    python benchmarks/whole_model.py [MODEL…] [--trials 1000] [--out FILE]

Tuning runs through the command line's own path; then the bundle and ONNX Runtime, one
thread, same weights and inputs, run in turn on the same core. Outputs are compared too.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime

import from_nothing  # noqa: F401
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.model import Budget, JobSpec
from tuneloom.tuners.tvm.bundles.loading import Bundle, load_bundle
from tuneloom.tuners.tvm.models.compiling.differences import relative_difference
from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs
from tuneloom.tuners.tvm.zoo.listing import zoo_model

MODELS = ("squeezenet", "mobilenet_v2", "resnet18")
ROUNDS = 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/whole_model.json"))
    options = parser.parse_args()
    known = json.loads(options.out.read_text()) if options.out.exists() else []
    rows = {row["model"]: row for row in known}
    for model in options.models:
        with tempfile.TemporaryDirectory() as folder:
            rows[model] = measure(model, options.trials, options.seed, Path(folder))
        options.out.parent.mkdir(exist_ok=True)
        options.out.write_text(json.dumps(list(rows.values()), indent=1) + "\n")
        print_table([rows[model]])
    print_table(list(rows.values()))


def measure(model: str, trials: int, seed: int, folder: Path) -> dict[str, Any]:
    """Tune one model from an empty store, then time it against ONNX Runtime."""
    spec = JobSpec(
        name=model,
        model=f"zoo:{model}",
        budget=Budget(trials=trials),
        seed=seed,
        out=str(folder / "bundle"),
    )
    started = time.perf_counter()
    outcome = tune([spec], RunSettings(store=str(folder / "store.db")), "benchmarks/whole_model.py")
    seconds = time.perf_counter() - started
    if outcome.failure is not None:
        raise outcome.failure
    result = outcome.jobs[0].result
    ours, theirs, difference = in_turn(model, load_bundle(folder / "bundle"))
    return {
        "model": model,
        "trials": result["trials"],
        "minutes": seconds / 60,
        "untuned_s": result["latency_before_s"],
        "ours_s": median(ours),
        "onnxruntime_s": median(theirs),
        "ratio": median(a / b for a, b in zip(ours, theirs, strict=True)),
        "spread": [float(q) for q in np.quantile(np.divide(ours, theirs), [0.1, 0.9])],
        "difference": difference,
        "failures": result["failures"],
        "kernels": slowest(outcome, result),
    }


def in_turn(model: str, bundle: Bundle) -> tuple[list[float], list[float], float]:
    """Seconds of single runs of both, one after the other, on the last core."""
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[-1:]))
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        zoo_model(model).SerializeToString(), settings, providers=["CPUExecutionProvider"]
    )
    values = seeded_inputs(bundle.inputs, seed=1)
    feeds = {info.name: value for info, value in zip(bundle.inputs, values, strict=True)}
    run = bundle.model.timer(values)
    difference = max(map(relative_difference, bundle.run(*values), session.run(None, feeds)))
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(timed(run))
        theirs.append(timed(lambda: session.run(None, feeds)))
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    return ours, theirs, difference


def timed(work: Any) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def slowest(outcome: Any, result: Any) -> list[dict[str, Any]]:
    """The kernels that take most of the model's time, with their rate."""
    from tuneloom.store import open_store

    store = open_store(outcome.jobs[0].spec["out"].removesuffix("bundle") + "store.db")
    tasks = {planned.task.key: planned.task for planned in store.tasks(outcome.jobs[0].id)}
    store.close()
    rows = []
    for key, kernel in result["kernels"].items():
        if kernel["after_s"]:
            task = tasks[key]
            rows.append(
                {
                    "name": task.name,
                    "shapes": task.shapes,
                    "weight": task.weight,
                    "total_s": task.weight * kernel["after_s"],
                    "gflops": task.gflop / kernel["after_s"],
                    "trials": kernel["trials"],
                }
            )
    return sorted(rows, key=lambda row: -float(row["total_s"]))[:12]


def print_table(rows: list[dict[str, Any]]) -> None:
    print("| model | trials | minutes | untuned ms | ours ms | ONNX Runtime ms | ours / ORT (10–90 %) |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for row in rows:
        low, high = row["spread"]
        print(
            f"| {row['model']} | {row['trials']} | {row['minutes']:.1f} | {row['untuned_s'] * 1e3:.1f} "
            f"| {row['ours_s'] * 1e3:.2f} | {row['onnxruntime_s'] * 1e3:.2f} "
            f"| {row['ratio']:.2f} ({low:.2f}–{high:.2f}) |"
        )


if __name__ == "__main__":
    main()
