"""Makes docs/benchmarks.md of the raw results in benchmarks/results; measures nothing.

    python benchmarks/tables.py

A section whose results are not there is left out, so no number on the page is older or
other than a results file. Results under a name that is unknown here are shown as they are.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "benchmarks.md"
INTRODUCTION = """\
# Benchmarks

This page is made by `python benchmarks/tables.py` from the raw results in `benchmarks/results`; what was
not measured is not here. Ratios come from one run on one machine, with both sides taking turns where that
is possible: absolute times of a shared machine drift by more than many of the differences shown.
"""

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One results file on the page: what was asked, how to measure it, and how to draw it."""

    results: str
    title: str
    about: str
    command: str
    draw: Callable[[Any], str]


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def number(value: object, digits: int = 4) -> str:
    """A number as short as it can be told."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}g}"


def flat(rows: Rows) -> str:
    """Rows of plain values as they are."""
    columns = [key for key, value in rows[0].items() if not isinstance(value, (list, dict))]
    return table(columns, [[number(row.get(column, "–")) for column in columns] for row in rows])


def as_it_is(data: Any) -> str:
    """Results of any form: tables of rows, lists of values."""
    if isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        return flat(data)
    if isinstance(data, dict):
        plain = {k: v for k, v in data.items() if not isinstance(v, (list, dict))}
        parts = [table(("what", "value"), [(k, number(v)) for k, v in plain.items()])] if plain else []
        nested = [(k, v) for k, v in data.items() if isinstance(v, (list, dict)) and v]
        return "\n\n".join([*parts, *(f"**{k}**\n\n{as_it_is(v)}" for k, v in nested)])
    return "```\n" + json.dumps(data) + "\n```"


def drawn_by(script: str, *words: str) -> Callable[[Any], str]:
    """The table that a benchmark draws of its own results."""

    def draw(_data: Any) -> str:
        command = [sys.executable, str(HERE / script), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    return draw


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


def against_onnxruntime(rows: Rows) -> str:
    sides = ("ours", "ONNX Runtime", "ours / ONNX Runtime", "bundle / ONNX Runtime", "ours / OpenVINO")
    columns = ("model", "cores", "trials", *sides, "outputs differ by")
    ordered = sorted(rows, key=lambda row: (row["cores"], row["trials"], row["ratio"]))
    return f"{_summaries(ordered)}\n\n{table(columns, [_against(row) for row in ordered])}"


def _summaries(rows: Rows) -> str:
    """All networks with as many cores and trials in a line."""
    sides = ("networks", "geometric mean", "above 1.0", "highest", "highest bundle")
    columns = ("cores", "trials", *sides, "against OpenVINO, geometric mean", "not behind OpenVINO")
    groups = groupby(rows, key=lambda row: (row["cores"], row["trials"]))
    return table(columns, [(*key, *_summary(list(group))) for key, group in groups])


def _summary(rows: Rows) -> Sequence[object]:
    ratios = [row["ratio"] for row in rows]
    bundles = [row["chosen_ratio"] for row in rows if "chosen_ratio" in row]
    thirds = [row["against_openvino"] for row in rows if "against_openvino" in row]
    highest = f"{max(bundles):.2f}" if bundles else "–"
    ours = (
        len(rows),
        f"{geometric_mean(ratios):.2f}",
        sum(ratio > 1 for ratio in ratios),
        f"{max(ratios):.2f}",
    )
    level = (f"{geometric_mean(thirds):.2f}", f"{sum(third <= 1 for third in thirds)} of {len(thirds)}")
    return (*ours, highest, *(level if thirds else ("–", "–")))


def _against(row: Mapping[str, Any]) -> Sequence[object]:
    low, high = row["spread"]
    times = [f"{row[key] * 1e3:.2f} ms" for key in ("ours_s", "onnxruntime_s")]
    ratio = f"{row['ratio']:.2f} ({low:.2f}–{high:.2f})"
    third = f"{row['against_openvino']:.2f}" if "against_openvino" in row else "–"
    words = (row["model"], row["cores"], _trials(row), *times, ratio, _bundle(row), third)
    return (*words, f"{row['difference']:.0e}")


def _bundle(row: Mapping[str, Any]) -> str:
    """How the bundle does, which may leave something to ONNX Runtime; unknown in older rows."""
    if "chosen_ratio" not in row:
        return "–"
    return f"{row['chosen_ratio']:.2f}" + (f" ({row['left']} left there)" if row["left"] else "")


def _trials(row: Mapping[str, Any]) -> str:
    """How many were asked for, and how many were made where time ran out before."""
    asked = int(row["trials"])
    made = int(row.get("trials_made", asked))
    return str(asked) if made >= asked else f"{made} of {asked}"


def int8(rows: Rows) -> str:
    """Both in int8, and both in float32 beside it."""
    sides = ("ours", "ONNX Runtime", "ours / ONNX Runtime", "ours, float32", "ONNX Runtime, float32")
    columns = ("model", "form", "trials", *sides, "ours is off by", "ONNX Runtime is off by")
    ordered = sorted(rows, key=lambda row: (row["cpu"], row["trials"], row["ratio"]))
    return table(("CPU", *columns), [_in_int8(row) for row in ordered])


def _in_int8(row: Mapping[str, Any]) -> Sequence[object]:
    low, high = row["spread"]
    ours, theirs, single, theirs_single = (
        f"{row[key] * 1e3:.2f} ms"
        for key in ("ours_s", "onnxruntime_s", "ours_float32_s", "onnxruntime_float32_s")
    )
    ratio = f"{row['ratio']:.2f} ({low:.2f}–{high:.2f})"
    off = (f"{row[key]:.1%}" for key in ("difference", "onnxruntime_difference"))
    form = "imported" if row.get("imported") else "--dtype int8"
    return (row["cpu"], row["model"], form, row["trials"], ours, theirs, ratio, single, theirs_single, *off)


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


def memory(row: Mapping[str, Any]) -> str:
    gib = f"{row['peak_bytes'] / 2**30:.2f} GiB"
    return table(
        ("model", "trials", "processes", "peak"), [(row["model"], row["trials"], row["processes"], gib)]
    )


def real_models(rows: Rows) -> str:
    """One line for each model, and how many agree."""
    right = [row for row in rows if row["agrees"]]
    tuned = [row for row in rows if row.get("trials")]
    alone = [row for row in rows if "tasks" in row and not row["foreign"]]
    lines = [
        (
            row["model"],
            "yes" if row["agrees"] else "no",
            "–" if "difference" not in row else f"{row['difference']:.1e}",
            "–" if "own_rounding" not in row else f"{row['own_rounding']:.1e}",
            row.get("import_and_lower_cpu_s", row.get("import_and_lower_s", "–")),
            row.get("again_s", "–"),
            row.get("trials") or "–",
            "–" if "ours_s" not in row else f"{row['ours_s'] / row['theirs_s']:.2f}",
            ", ".join(row.get("foreign", ())) + _share(row),
            row.get("reason", ""),
        )
        for row in rows
    ]
    opened = ("import and lower, s", "again, s")
    columns = ("model", "agrees", "difference", "own rounding", *opened, "trials", "time")
    summary = (
        f"{len(right)} of {len(rows)} agree, {len(tuned)} of them measured after tuning; "
        f"{len(alone)} of {len(rows)} come in for TVM alone."
    )
    return f"{summary}\n\n{table((*columns, 'in ONNX Runtime', 'why not'), lines)}"


def _share(row: Mapping[str, Any]) -> str:
    if row.get("left"):
        return "all of it, being faster there"
    return f" ({row['foreign_share']:.1%})" if row.get("foreign") else ""


def cut_costs(rows: Rows) -> str:
    """Microseconds by the number of values that cross the cut."""
    names = ("uncut_s", "cut_s", "added_s", "onnxruntime_operator_s", "onnxruntime_all_s")
    lines = [(row["numbers"], *(f"{row[name] * 1e6:.1f}" for name in names)) for row in rows]
    columns = ("uncut, µs", "cut, µs", "added, µs", "ONNX Runtime, the operator, µs", "all three, µs")
    return table(("numbers", *columns), lines)


def operators(rows: Rows) -> str:
    """Counts by operator; those that pass everything in one list."""
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        own = counts.setdefault(row["operator"], {})
        own[row["result"]] = own.get(row["result"], 0) + 1
    passed = {name for name, own in counts.items() if set(own) <= {"ok", "constant"}}
    results = ("ok", "constant", "onnxruntime", "theirs", "refused", "wrong", "lost")
    lines = [
        (name, *(own.get(result, "") for result in results))
        for name, own in sorted(counts.items())
        if name not in passed
    ]
    total = {result: sum(own.get(result, 0) for own in counts.values()) for result in results}
    words = ", ".join(f"{result} {count}" for result, count in total.items() if count)
    return (
        f"{len(rows)} cases: {words}.\n\n"
        f"All sampled cases pass in TVM alone: {', '.join(sorted(passed))}.\n\n"
        f"{table(('operator', *results), lines)}"
    )


def each_alone(rows: Rows) -> str:
    """Rows that have different columns: a table for each."""
    return "\n\n".join(flat([row]) for row in rows)


def one_row(data: Mapping[str, Any]) -> str:
    """One measurement: a line for each figure."""
    return table(
        ("figure", "value"), ((name.replace("_", " "), _figure(value)) for name, value in data.items())
    )


def _figure(value: object) -> object:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {number(each)}" for name, each in value.items())
    return number(value)


def farm_against_local(data: Mapping[str, Any]) -> str:
    columns = ("pair", "local, trials a minute", "ray, trials a minute", "ratio")
    rows = [
        (
            pair["pair"] + 1,
            number(pair["local"]["trials_per_minute"]),
            number(pair["ray"]["trials_per_minute"]),
            number(pair["ratio"]),
        )
        for pair in data["pairs"]
    ]
    where = f"{data['model']}, {data['machine']}, {data['cores']} cores, load {data['load']:.1f}"
    return f"{table(columns, rows)}\n\nMedian ratio: {data['ratio']:.3f}; {where}."


def farm_makespan(rows: Rows) -> str:
    columns = ("case", "jobs", "trials", "makespan", "bound", "makespan / bound")
    lines = [
        (
            row["case"],
            row["jobs"],
            row["trials"],
            *(f"{row[key]:.1f} s" for key in ("makespan_s", "bound_s")),
            f"{row['ratio']:.3f}",
        )
        for row in rows
    ]
    stages = ", ".join(f"{kind} {seconds:g} s" for kind, seconds in rows[0]["stages_s"].items())
    return f"{table(columns, lines)}\n\nStages: {stages}."


def farm_kills(pieces: Rows) -> str:
    kinds = ("agents", "workers", "machines", "drivers")
    columns = (
        "model",
        "kills",
        *kinds,
        "jobs",
        "not ended",
        "trials",
        "lost",
        "doubled",
        "too many",
        "failures",
    )
    rows = [
        (
            piece["model"],
            piece["kills"],
            *(piece[f"killed_{kind}"] for kind in kinds),
            *(piece[key] for key in ("jobs", "jobs_not_finished", "trials", "lost", "doubled", "too_many")),
            _figure(piece["failures"]),
        )
        for piece in pieces
    ]
    sums = [sum(values) for values in zip(*(row[1:-1] for row in rows), strict=True)]
    return table(columns, [*rows, ("all", *sums, "")])


def farm_gpu(data: Mapping[str, Any]) -> str:
    columns = ("engine", "trials", "before", "after", "trials a minute")
    rows = [
        (
            engine,
            pair[engine]["trials"],
            *(f"{pair[engine][key] * 1e3:.3f} ms" for key in ("latency_before_s", "latency_after_s")),
            number(pair[engine]["trials_per_minute"]),
        )
        for pair in data["pairs"]
        for engine in ("local", "ray")
    ]
    told = f"Ray's trials a minute against local ones: {data['ratio']:.3f}, {data['device']}."
    return f"{table(columns, rows)}\n\n{told}"


SECTIONS = (
    Section(
        results="against_stock.json",
        title="Trials a minute, and what they find, against stock MetaSchedule",
        about="The same kernels, trials, batch and evaluator; stock gets a build timeout that lets it work. "
        "The best of both are then timed in turn. Medians over seeds. On the right, how long our stages held "
        "their resource. On two cores of an Intel Xeon (Skylake), others at work on the same server.",
        command="benchmarks/against_stock.py",
        draw=against_stock,
    ),
    Section(
        results="whole_model.json",
        title="Whole models on one core",
        about="Tuned by Tuneloom and run by ONNX Runtime in turn, same weights and inputs, one thread. "
        "The ratio is the median of paired runs, with its 10 and 90 % quantiles.",
        command="benchmarks/whole_model.py",
        draw=whole_models,
    ),
    Section(
        results="against_onnxruntime.json",
        title="Networks people run, on ARM",
        about="One of two cores of an ARM Neoverse N1; short scripts ran beside a few of the networks "
        "(see the spread). Both sides ran in turn; the ratio is that of their 20 % quantiles, in brackets "
        "the 10 and 90 % quantiles of paired runs. Weights are random except in models that a package ships.",
        command="benchmarks/against_onnxruntime.py",
        draw=against_onnxruntime,
    ),
    Section(
        results="against_onnxruntime_x86.json",
        title="Networks people run, on x86",
        about="On a machine of two cores of an Intel Xeon (Skylake, AVX-512 without VNNI), others at work on "
        "the same server. Files come from packages, `real_architectures.py` and `speed_architectures.py`; "
        "ratios as above.",
        command="benchmarks/against_onnxruntime.py",
        draw=against_onnxruntime,
    ),
    Section(
        results="against_onnxruntime_server.json",
        title="Networks people run, on an x86 server",
        about="Measured earlier on a server with AVX-512 and 16 cores, seven or eight networks at a time, "
        "each with two cores or more to itself; rows without a bundle are older than the choice between "
        "runtimes.",
        command="benchmarks/against_onnxruntime.py",
        draw=against_onnxruntime,
    ),
    Section(
        results="int8.json",
        title="Networks in int8",
        about="Both calibrated on the same samples of noise; ONNX Runtime's own quantisation (QDQ, a scale "
        "for each channel of the weights). All ran in turn on one core. With 0 trials, and in float32, ours "
        "has the first guess of every template. `imported`: ours is made of the file that ONNX Runtime runs.",
        command="benchmarks/int8.py",
        draw=int8,
    ),
    Section(
        results="memory.json",
        title="Memory while tuning",
        about="The highest sum of proportional set sizes over all processes of the program.",
        command="benchmarks/memory.py",
        draw=memory,
    ),
    Section(
        results="policies_real.json",
        title="Policies, with real tuning",
        about="Three networks as jobs of one run, the same seeds and trials under each policy. `synchronous` "
        "starts the stages of all jobs at once, so its host can be busy more than once. "
        "Latencies are those of the models that all policies made, timed in turn when all runs were over.",
        command="benchmarks/policies_real.py",
        draw=drawn_by("policies_real.py", "--table"),
    ),
    Section(
        results="scheduler_overhead.json",
        title="What scheduling costs a single job",
        about="One job under `sequential` against a bare loop over the same stages.",
        command="benchmarks/scheduler_overhead.py",
        draw=drawn_by("scheduler_overhead.py", "--table"),
    ),
    Section(
        results="simulated_policies.json",
        title="Policies, simulated",
        about="Makespan against a lower bound (1 is perfect). `thesis`: select and update 44 s, build 8.3 s, "
        "profile 39.5 s a round, against the plain bound: the work of the busier resource, or the longest "
        "chain of one job. `mixed`: durations over two orders of magnitude, eight devices of three kinds, "
        "Poisson arrivals, seeds nobody looked at; against a bound that also knows that chains have heads "
        "and tails, that parts do not divide, and that long turns do not fit into short gaps.",
        command="benchmarks/simulated_policies.py",
        draw=as_it_is,
    ),
    Section(
        results="core_overhead.json",
        title="Time and memory of the scheduling core",
        about="Decisions replayed from a simulation.",
        command="benchmarks/core_overhead.py",
        draw=as_it_is,
    ),
    Section(
        results="farm_makespan.json",
        title="A farm of three machines against its bound",
        about="Eight mock jobs on three simulated nodes of Ray, each with 4 slots and two devices; stages "
        "take known times and need no core. In the second run a machine is killed after a third of the "
        "time, and a new one joins. The bound counts what was there when.",
        command="benchmarks/farm_makespan.py",
        draw=farm_makespan,
    ),
    Section(
        results="farm_scale.json",
        title="A large farm, simulated",
        about="10,000 jobs on 200 machines with 1,000 devices of 20 kinds that come and go, in simulated "
        "time with the real scheduling core.",
        command="benchmarks/farm_scale.py",
        draw=one_row,
    ),
    Section(
        results="farm_driver.json",
        title="What one driver carries",
        about="1,000 mock devices on four real agents; the driver's own CPU time per trial, store included.",
        command="benchmarks/farm_driver.py",
        draw=one_row,
    ),
    Section(
        results="farm_kills.json",
        title="Kills on a farm",
        about="Agents, workers, machines and the driver killed at random moments. `lost`: trials that are "
        "missing at the end; `doubled`: there more than once. A killed worker costs its candidate a failed "
        "trial. `network` is a real one that TVM tunes.",
        command="benchmarks/farm_kills.py",
        draw=farm_kills,
    ),
    Section(
        results="farm_against_local.json",
        title="One machine with Ray and without",
        about="The same model and seeds, in turn; trials a minute while tuning. Ray's own processes share "
        "the cores with builds.",
        command="benchmarks/farm_against_local.py",
        draw=farm_against_local,
    ),
    Section(
        results="farm_against_local_mock.json",
        title="One machine with Ray and without: what messages cost",
        about="The same with mock stages that only wait, so that other programs hardly disturb: what is "
        "left is the way to the agent and back.",
        command="benchmarks/farm_against_local.py",
        draw=farm_against_local,
    ),
    Section(
        results="farm_gpu.json",
        title="A GPU through Ray and without",
        about="The same model, seed and GPU, in turn; the model's median latency before and after tuning.",
        command="benchmarks/farm_gpu.py",
        draw=farm_gpu,
    ),
    Section(
        results="store_kills.json",
        title="Kills at random moments",
        about="Writers killed with SIGKILL while they commit trials. `lost`: acknowledged, but gone; "
        "`doubled`: there more than once; `unacknowledged`: committed, but killed before they could say so.",
        command="benchmarks/store_kills.py",
        draw=as_it_is,
    ),
    Section(
        results="store_bank.json",
        title="Asking a bank of 100,000 records",
        about="Medians in milliseconds, SQLite on a disk.",
        command="benchmarks/store_bank.py",
        draw=as_it_is,
    ),
    Section(
        results="sharing.json",
        title="Sharing inside a model",
        about="Performance of the whole model against full tuning of every task, both bundles timed in turn, "
        "and the share of the time, planning included.",
        command="benchmarks/sharing.py",
        draw=drawn_by("sharing.py", "--table"),
    ),
    Section(
        results="transfer.json",
        title="Transfer between models",
        about="Each model with the others as bank, against the course of plain tuning: whole models as they "
        "were at a time, run in turn.",
        command="benchmarks/transfer.py",
        draw=drawn_by("transfer.py", "--table"),
    ),
    Section(
        results="real_models.json",
        title="Models that packages ship, and networks of PyTorch",
        about="Imported, lowered, compiled, run and compared with their own runtime; where there are trials, "
        "tuned before through the command line's own path. `own rounding`: how far the own runtime's outputs "
        "move when the last bit of the inputs does. `time`: the tuned model's against its own runtime's. "
        "Import in CPU seconds; `again`: all of `tuneloom tasks` for a model that was opened before, "
        "in wall-clock seconds. On two cores of an Intel Xeon (Skylake).",
        command="benchmarks/real_models.py",
        draw=real_models,
    ),
    Section(
        results="further_models.json",
        title="Models that nothing was made for",
        about="A second set, tried when the first one agreed, untuned: files in other packages, and models "
        "that scikit-learn's exporter made.",
        command="benchmarks/real_models.py --further",
        draw=real_models,
    ),
    Section(
        results="cut_costs.json",
        title="What a cut costs",
        about="Three elementwise operators, which are one kernel in TVM alone, and the same with the middle "
        "one left to ONNX Runtime: two kernels and a call that works on the program's own tensors. Beside "
        "them, ONNX Runtime by itself through its Python interface. All ran in turn on one core.",
        command="benchmarks/cut_costs.py",
        draw=cut_costs,
    ),
    Section(
        results="onnx_operators.json",
        title="Node tests of ONNX",
        about="The cases that the package `onnx` ships, by operator: how many pass in TVM alone "
        "as they are, with their further inputs as constants, and with ONNX Runtime's help. `theirs`: it "
        "gives another answer than the case. `refused`: by name, for instance sequences as outputs.",
        command="benchmarks/onnx_operators.py",
        draw=operators,
    ),
    Section(
        results="service_shares.json",
        title="Shares of tenants",
        about="A hundred jobs of ten tenants whose numbers of jobs have nothing to do with their weights, on "
        "one executor and on two. `real`: executors as processes, with mock stages that sleep and a device "
        "that is always wanted. `simulated` (`service_shares_simulated.py`): the same claims and the same "
        "scheduler in simulated time, with long stages of unequal length. `worst` is how far "
        "the device time of a tenant is from what its weight gives it; at most 0.05 is wanted.",
        command="benchmarks/service_shares.py",
        draw=flat,
    ),
    Section(
        results="service_kills.json",
        title="A service that is killed",
        about="Server and executors killed at random moments while a client submits jobs with idempotency "
        "keys. Nothing may be lost or doubled, and everything has to end. `start_s` is what an executor "
        "takes from its start to its first trial; processes live three times as long on average, "
        "exponentially distributed. `waited_s` is the time after the last kill until all jobs had ended.",
        command="benchmarks/service_kills.py",
        draw=flat,
    ),
    Section(
        results="service_executor.json",
        title="What holding runs costs an executor",
        about="Transactions a second of an executor that holds 25 runs, before and after it came to "
        "write about all of them at once. Two trials a second are committed one by one.",
        command="benchmarks/service_executor.py",
        draw=flat,
    ),
    Section(
        results="service_overhead.json",
        title="What the service costs a job",
        about="`tuneloom tune MODEL --server URL` against `tuneloom tune MODEL`, in turn, from the start of "
        "the command to its end. `mock` has stages of known lengths, `network` is compiled and measured. "
        "Medians; at most 1.03 is wanted.",
        command="benchmarks/service_overhead.py",
        draw=lambda data: flat(data["cases"]),
    ),
    Section(
        results="service_load.json",
        title="A server under load",
        about="Submitting a small job while an executor tunes (SQLite), listing 50 of many jobs "
        "(PostgreSQL), and trials a second of a job with and without listeners to its events. Wanted: a "
        "median of 50 ms and 99 % below 300 ms, a median of 50 ms, and a ratio of at least 0.98. `machine` "
        "tells what else the two cores had to do.",
        command="benchmarks/service_load.py",
        draw=each_alone,
    ),
    Section(
        results="service_hostile.json",
        title="Hostile requests",
        about="Wrong tokens, ids of other tenants, path tricks, odd numbers and bodies, wrong types, bombs, "
        "torn uploads and raw bytes against a server that listens.",
        command="benchmarks/service_hostile.py",
        draw=flat,
    ),
    Section(
        results="planning.json",
        title="Planning with a large bank",
        about="Clusters, donors and fits for a model, nothing measured.",
        command="benchmarks/planning.py",
        draw=as_it_is,
    ),
    Section(
        results="kernel_gpu.json",
        title="Kernels on a GPU",
        about="A sum of 2²⁶ floats in CUDA C and a product of 4096³ halves in Triton, on an H200. "
        "`plain` is the default search, `chance` the random one. Medians over seeds.",
        command="benchmarks/gpu_kernels.py",
        draw=drawn_by("gpu_kernels.py", "--table"),
    ),
    Section(
        results="kernel_c_matmul.json",
        title="A matrix product in C",
        about="A blocked product with knobs against its naive form, tuned on this machine.",
        command="benchmarks/c_matmul.py",
        draw=as_it_is,
    ),
)


def drawn(section: Section) -> str:
    text = (RESULTS / section.results).read_text()
    data = json.loads(text) if section.results.endswith(".json") else None
    about = f"{section.about}\n\n" if section.about else ""
    return (
        f"## {section.title}\n\n{about}{section.draw(data)}\n\n"
        f"Measured by `python {section.command}`, raw results in `benchmarks/results/{section.results}`.\n"
    )


def unknown() -> list[Section]:
    """Results that no section above names."""
    named = {section.results for section in SECTIONS}
    return [
        Section(
            results=path.name,
            title=path.stem.replace("_", " ").capitalize(),
            about="",
            command=f"benchmarks/{path.stem}.py",
            draw=as_it_is,
        )
        for path in sorted(RESULTS.glob("*.json"))
        if path.name not in named
    ]


def told() -> list[str]:
    """Results that a benchmark tells in its own words, one level down."""
    texts = [path.read_text().strip() for path in sorted(RESULTS.glob("*.md"))]
    return [re.sub(r"^#", "##", text, flags=re.M) + "\n" for text in texts]


def main() -> None:
    there = [s for s in (*SECTIONS, *unknown()) if (RESULTS / s.results).exists()]
    PAGE.write_text("\n".join([INTRODUCTION, *map(drawn, there), *told()]))
    missing = [s.results for s in SECTIONS if s not in there]
    print(f"{PAGE.name}: {len(there)} sections; without results: {', '.join(missing) or 'none'}")


if __name__ == "__main__":
    main()
