"""Trials a minute and best latency against stock MetaSchedule, on the same kernels.

    python benchmarks/against_stock.py [--trials 256] [--stock-trials 256] [--seeds 3] [--out FILE]

Both get the same PrimFunc for one core and the same evaluator, and the whole machine to build on;
trials and batches, too, unless said otherwise. Kernels run in one thread. Stock gets a build timeout
that lets it work. Afterwards the best schedules of both are built again and timed side by side, in
turn. Every kernel is done with one seed before the next seed; a call that was interrupted goes on where
it ended, unless its file is removed. Our space of a kernel may hold fewer schedules than the trials
asked for; a minute's trials count what was tried.
"""

import argparse
import json
import math
import os
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import from_nothing  # noqa: F401
import tests_on_path  # noqa: F401
from support.jobs.task_job import tune_tasks
from tuneloom.app.conducting.listening import Listener
from tuneloom.app.devices.describing import MachineOrder, describe
from tuneloom.app.kinds.model.kind import KIND
from tuneloom.engine.local import LocalEngine
from tuneloom.model import Artifact, Budget, JobSpec, MeasuringRules, ModelRecipe, ModelSummary, Task
from tuneloom.store import SpanRecord
from tuneloom.tuners.tvm.lowering.payloads import unpack_kernel
from tuneloom.tuners.tvm.measuring.contest import contest
from tuneloom.tuners.tvm.measuring.rebuilding import rebuild_kernel
from tuneloom.tuners.tvm.models.opening import open_model

KERNELS = (
    ("resnet18", "fused_conv2d", 1),
    ("mobilenet_v2", "fused_conv2d", 0),
    ("transformer", "fused_product", 0),
    ("mobilenet_v2", "fused_depthwise_conv2d", 0),
    ("resnet18", "fused_conv2d", 0),
    ("mobilenet_v2", "fused_conv2d", 1),
    ("transformer", "fused_product", 1),
    ("mobilenet_v2", "fused_depthwise_conv2d", 1),
    ("resnet18", "fused_conv2d", 2),
    ("mobilenet_v2", "fused_conv2d", 2),
    ("transformer", "fused_product", 2),
    ("resnet18", "fused_conv2d", 3),
)
"""Convolutions of 3 by 3 and 1 by 1, matrix products, depthwise ones: the n-th heaviest of a model."""
STOCK_BUILD_TIMEOUT_S = 150
REPEATS, MIN_REPEAT_MS = 1, 100.0
os.environ["TVM_NUM_THREADS"] = "1"  # stock spreads its loops over all cores, whatever its target says


class StageTimes(Listener):
    """Sums the seconds stages held their resource."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def ran(self, span: SpanRecord) -> None:
        self.seconds[span.kind] += span.end_s - span.start_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=256)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--stock-batch", type=int, help="batches of stock, if not as large as ours")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kernels", type=int, default=4, help=f"how many, at most {len(KERNELS)}")
    parser.add_argument("--from-kernel", type=int, default=0, help="the first one, counted from 0")
    parser.add_argument("--stock-trials", type=int, help="trials of stock, if not as many as ours")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/against_stock.json"))
    options = parser.parse_args()
    rows = json.loads(options.out.read_text()) if options.out.exists() else []
    for seed in range(options.seeds):
        for model, start, rank in KERNELS[options.from_kernel :][: options.kernels]:
            task = heaviest(model, start, rank)
            effort = Effort(
                ours=options.trials,
                stock=options.stock_trials or options.trials,
                batch=options.batch,
                stock_batch=options.stock_batch or options.batch,
            )
            if not measured(rows, task, seed, effort):
                rows.append(compare(task, model, seed, effort))
                write(rows, options.out)
    print_table(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """Trials of both tuners, and how many of them each makes at once."""

    ours: int
    stock: int
    batch: int
    stock_batch: int


def measured(rows: list[dict[str, Any]], task: Task, seed: int, effort: Effort) -> bool:
    """Whether an earlier, interrupted call has this row already."""
    for row in rows:
        batch, trials = row["batch"], row["trials"]
        spent = Effort(
            ours=trials,
            stock=row.get("stock_trials", trials),
            batch=batch,
            stock_batch=row.get("stock_batch", batch),
        )
        if (row["kernel"], row["seed"], spent) == (task.name, seed, effort):
            return True
    return False


def write(rows: list[dict[str, Any]], out: Path) -> None:
    """Keep what is measured so far, and say it."""
    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps(rows, indent=1) + "\n")
    print(json.dumps({k: v for k, v in rows[-1].items() if k != "contest_s"}), flush=True)


def heaviest(model: str, start: str, rank: int) -> Task:
    """A kernel by its name's start and its share of the model's arithmetic."""
    recipe = ModelRecipe(key=model, source=f"zoo:{model}", shapes={}, target="cpu")
    summary = open_model(recipe)
    assert isinstance(summary, ModelSummary)
    alike = [task for task in summary.tasks if task.name.startswith(start)]
    return sorted(alike, key=lambda task: -task.weight * task.gflop)[rank]


def compare(task: Task, model: str, seed: int, effort: Effort) -> dict[str, Any]:
    """One kernel, one seed, both tuners, one after the other."""
    ours = tune_ours(task, seed, effort.ours, effort.batch)
    stock = tune_stock(task, seed, effort.stock, effort.stock_batch)
    traces = [trace for trace in (ours["trace"], stock["trace"]) if trace]
    built = [rebuild_kernel(task.payload, trace) for trace in traces]
    rounds = contest([b.payload for b in built if isinstance(b, Artifact)], MeasuringRules())
    both = len(rounds) == 2
    return {
        "model": model,
        "kernel": task.name,
        "shapes": task.shapes,
        "gflop": task.gflop,
        "seed": seed,
        "trials": effort.ours,
        "stock_trials": effort.stock,
        "batch": effort.batch,
        "stock_batch": effort.stock_batch,
        "ours_trials_per_minute": ours["trials"] / ours["seconds"] * 60,
        "stock_trials_per_minute": stock["trials"] / stock["seconds"] * 60,
        "ours_trials": ours["trials"],
        "ours_valid": ours["valid"],
        "stock_valid": stock["valid"],
        "ours_best_s": median(rounds[0]),
        "stock_best_s": median(rounds[1]) if both else None,
        "latency_ratio": median(rounds[0]) / median(rounds[1]) if both else 0.0,
        "ours_stage_s": ours["stages"],
        "contest_s": rounds,
    }


def tune_ours(task: Task, seed: int, trials: int, batch: int) -> dict[str, Any]:
    """Our tuner, workers' start included; the identical evaluator: no run is cut short."""
    rules = MeasuringRules(repeats=REPEATS, min_repeat_ms=MIN_REPEAT_MS, hopeless_ratio=1e9)
    spec = JobSpec(
        name="ours", model="", budget=Budget(trials=trials), measuring=rules, batch=batch, seed=seed
    )
    times = StageTimes()
    started = time.perf_counter()
    engine = LocalEngine(KIND.warm_up)
    try:
        tuning = tune_tasks([task], spec, engine, describe(MachineOrder()).fleet, listener=times)
    finally:
        engine.close()
    progress = tuning.tasks[0]
    return {
        "seconds": time.perf_counter() - started,
        "trials": len(progress.trials),
        "valid": progress.measured,
        "trace": progress.best[0].trial.candidate.configuration if progress.best else None,
        "stages": dict(times.seconds),
    }


def tune_stock(task: Task, seed: int, trials: int, batch: int) -> dict[str, Any]:
    """Stock `tune_tir` as its documentation shows it, with a build timeout that lets it work."""
    from tvm.s_tir import meta_schedule as ms

    kernel = unpack_kernel(task.payload)
    module, target = kernel.module, kernel.target
    config = ms.runner.EvaluatorConfig(number=1, repeat=REPEATS, min_repeat_ms=int(MIN_REPEAT_MS))
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        database = ms.tir_integration.tune_tir(
            mod=module,
            target=target.to_tvm(),
            work_dir=folder,
            max_trials_global=trials,
            num_trials_per_iter=batch,
            builder=ms.builder.LocalBuilder(
                max_workers=len(os.sched_getaffinity(0)), timeout_sec=STOCK_BUILD_TIMEOUT_S
            ),
            runner=ms.runner.LocalRunner(timeout_sec=60, evaluator_config=config),
            seed=seed + 1,
        )
        seconds = time.perf_counter() - started
        records = database.get_all_tuning_records()
        valid = [record for record in records if min(float(s) for s in record.run_secs) < 1e9]
        best = min(valid, key=lambda record: min(float(s) for s in record.run_secs), default=None)
        from tuneloom.tuners.tvm.lowering.payloads import trace_text

        trace = trace_text(best.trace) if best is not None else None
    return {"seconds": seconds, "trials": trials, "valid": len(valid), "trace": trace}


def print_table(rows: list[dict[str, Any]]) -> None:
    """Medians over seeds, one line a kernel."""
    print("| kernel | trials/min ours | stock | ratio | best ours ms | stock ms | ratio (median of seeds) |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name in dict.fromkeys(row["kernel"] for row in rows):
        own = [row for row in rows if row["kernel"] == name]
        pace = [row["ours_trials_per_minute"] for row in own], [row["stock_trials_per_minute"] for row in own]
        ratio = median(a / b for a, b in zip(*pace, strict=True))
        best = median(r["ours_best_s"] for r in own) * 1e3
        stock = median(r["stock_best_s"] or math.inf for r in own) * 1e3
        latency = median(r["latency_ratio"] for r in own)
        print(
            f"| {own[0]['model']} {name} | {median(pace[0]):.0f} | {median(pace[1]):.0f} | {ratio:.2f} "
            f"| {best:.3f} | {stock:.3f} | {latency:.3f} |"
        )


if __name__ == "__main__":
    main()
