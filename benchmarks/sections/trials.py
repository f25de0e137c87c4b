"""Trials a minute, what they find and what they cost."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from sections.drawing import Rows, Section, table

STAGES = ("select", "build", "profile", "update")


def against_stock(rows: Rows) -> str:
    stages = tuple(f"{stage}, ms a trial" for stage in STAGES)
    paces = ("trials a minute", "stock's", "times as many")
    columns = ("kernel", "seeds", "trials", *paces, "latency / stock's", *stages)
    return table(columns, [_kernel(rows, name) for name in dict.fromkeys(row["kernel"] for row in rows)])


def _kernel(rows: Rows, name: str) -> Sequence[object]:
    own = [row for row in rows if row["kernel"] == name]
    ours, stock = ([r[f"{who}_trials_per_minute"] for r in own] for who in ("ours", "stock"))
    ratio = median(a / b for a, b in zip(ours, stock, strict=True))
    latency = median(row["latency_ratio"] for row in own)
    return (
        f"{own[0]['model']} {name}",
        len(own),
        f"{median(_tried(r) for r in own):.0f} of {own[0]['trials']}",
        f"{median(ours):.0f}",
        f"{median(stock):.0f}",
        f"{ratio:.2f}",
        f"{latency:.3f}",
        *(f"{median(r['ours_stage_s'][stage] / _tried(r) for r in own) * 1e3:.0f}" for stage in STAGES),
    )


def _tried(row: Mapping[str, Any]) -> int:
    """How many trials we made; rows of old that do not say so had no failures."""
    return int(row.get("ours_trials", row["ours_valid"]))


def fewer_trials(rows: Rows) -> str:
    columns = ("kernel", "trials", "stock's", "latency, ms", "stock's, ms", "latency / stock's")
    found = [
        (
            f"{row['model']} {row['kernel']}",
            row["ours_trials"],
            row["stock_trials"],
            *(f"{row[f'{who}_best_s'] * 1e3:.3f}" for who in ("ours", "stock")),
            f"{row['latency_ratio']:.2f}",
        )
        for row in rows
    ]
    ratio = median(row["latency_ratio"] for row in rows)
    return f"{table(columns, found)}\n\nMedian of {len(rows)} kernels: {ratio:.2f} of stock's latency."


def whole_models(rows: Rows) -> str:
    columns = ("model", "trials", "minutes", "untuned TVM", "tuned", "ONNX Runtime", "tuned / ONNX Runtime")
    return table(columns, [_whole_model(row) for row in rows])


def _whole_model(row: Mapping[str, Any]) -> Sequence[object]:
    low, high = row["spread"]
    times = [f"{row[key] * 1e3:.2f} ms" for key in ("untuned_s", "ours_s", "onnxruntime_s")]
    return (
        row["model"],
        row["trials"],
        f"{row['minutes']:.1f}",
        *times,
        f"{row['ratio']:.2f} ({low:.2f}–{high:.2f})",
    )


def memory(row: Mapping[str, Any]) -> str:
    gib = f"{row['peak_bytes'] / 2**30:.2f} GiB"
    return table(
        ("model", "trials", "processes", "peak"), [(row["model"], row["trials"], row["processes"], gib)]
    )


SECTIONS = (
    Section(
        results="against_stock.json",
        title="Trials a minute, and what they find, against stock MetaSchedule",
        about="The same kernels, trials, batch and evaluator; stock gets a build timeout that lets it work. "
        "The best of both are then timed alternately. Medians over seeds. On the right, how long our stages "
        "held their resource. On two cores of an Intel Xeon (Cascade Lake). The evaluator takes 100 ms of "
        "each trial on both sides.",
        command="benchmarks/against_stock.py",
        draw=against_stock,
    ),
    Section(
        results="against_stock_fewer.json",
        title="After a quarter of the trials of stock MetaSchedule",
        about="The same kernels after 64 trials in batches of 16, and after 256 of stock MetaSchedule in "
        "batches of 64, both timed alternately. On two cores of an Intel Xeon with AVX-512. Some of our "
        "spaces hold fewer schedules.",
        command="benchmarks/against_stock.py --kernels 12 --trials 64 --batch 16 --stock-trials 256 "
        "--stock-batch 64 --seeds 1 --out benchmarks/results/against_stock_fewer.json",
        draw=fewer_trials,
    ),
    Section(
        results="whole_model.json",
        title="Whole models on one core",
        about="Tuned by Tuneloom and run by ONNX Runtime alternately, with the same weights and inputs, one "
        "thread. The ratio is the median of paired runs, with its 10 and 90 % quantiles.",
        command="benchmarks/whole_model.py",
        draw=whole_models,
    ),
    Section(
        results="memory.json",
        title="Memory while tuning",
        about="The highest sum of proportional set sizes over all processes of the program.",
        command="benchmarks/memory.py",
        draw=memory,
    ),
)
