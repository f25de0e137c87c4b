"""Networks people run, against ONNX Runtime and OpenVINO."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import geometric_mean
from typing import Any

from sections.drawing import Rows, Section, table


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
    above = sum(ratio > 1 for ratio in ratios)
    ours = (len(rows), f"{geometric_mean(ratios):.2f}", above, f"{max(ratios):.2f}")
    return (*ours, f"{max(bundles):.2f}" if bundles else "–", *_level(rows))


def _level(rows: Rows) -> Sequence[object]:
    """How far OpenVINO is, and how often we are not behind it; unknown where it was not installed."""
    ratios = [row["against_openvino"] for row in rows if "against_openvino" in row]
    if not ratios:
        return ("–", "–")
    return (f"{geometric_mean(ratios):.2f}", f"{sum(ratio <= 1 for ratio in ratios)} of {len(ratios)}")


def headline(rows: Rows) -> str:
    """What the README says: all networks on one core, with as many trials as were made."""
    alone = [row for row in rows if row["cores"] == 1]
    trials = max(row["trials"] for row in alone)
    asked = [row for row in alone if row["trials"] == trials]
    count, mean, _, highest, _, openvino, _ = _summary(asked)
    return (
        f"{count} networks, tuned with {trials} trials each, take {mean} of ONNX Runtime's time and "
        f"{openvino} of OpenVINO's (geometric means); the slowest of them takes {highest} of ONNX Runtime's."
    )


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


def bfloat16(rows: Rows) -> str:
    """Ours in bfloat16, ours in float32 and ONNX Runtime in float32."""
    sides = (
        "ours",
        "ours, float32",
        "ONNX Runtime, float32",
        "ours / ours in float32",
        "ours / ONNX Runtime",
    )
    columns = ("CPU", "model", "in tiles", "trials", *sides, "outputs differ by")
    ordered = sorted(rows, key=lambda row: (row["cpu"], row["trials"], row["ratio"]))
    return table(columns, [_in_bfloat16(row) for row in ordered])


def _in_bfloat16(row: Mapping[str, Any]) -> Sequence[object]:
    low, high = row["spread"]
    keys = ("ours_s", "ours_float32_s", "onnxruntime_float32_s")
    times = [f"{row[key] * 1e3:.2f} ms" for key in keys]
    ratios = (f"{row['ratio']:.2f} ({low:.2f}–{high:.2f})", f"{row['against_onnxruntime']:.2f}")
    words = (row["cpu"], row["model"], "yes" if row["tiles"] else "no", row["trials"])
    return (*words, *times, *ratios, f"{row['difference']:.1%}")


def roofline(data: Mapping[str, Any]) -> str:
    """What the core does at best, and which share of it each network reaches."""
    rates = ", ".join(f"{rate:.0f} GB/s in buffers of {size >> 10:,} KiB" for size, rate in data["gb_s"])
    columns = ("network", "ms", "GFLOP/s", "of the peak", "share of the bound", "bound by memory")
    rows = [
        [row["model"], f"{row['ms']:.2f}", f"{row['gflop_s']:.1f}"]
        + [f"{row[name]:.0%}" for name in ("of_peak", "share", "bound_by_memory")]
        for row in data["networks"]
    ]
    return f"One core makes {data['gflops']:.1f} GFLOP/s and moves {rates}.\n\n{table(columns, rows)}"


SECTIONS = (
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
        results="roofline.json",
        title="Networks on ARM, against what the core can do",
        about="The peak of one core is measured by multiply-adds in registers; rates of memory by sums of "
        "vectors that fit into caches and that do not. A kernel needs at least its operations at that peak, "
        "or the time to move its inputs and outputs once; the share is the sum of these bounds over the time "
        "that was measured.",
        command="benchmarks/roofline.py",
        draw=roofline,
    ),
    Section(
        results="against_onnxruntime_x86.json",
        title="Networks people run, on x86",
        about="On a machine of two cores of an Intel Xeon (Cascade Lake, AVX-512 with VNNI), others at work "
        "on the same server. Files come from packages, `real_architectures.py` and `speed_architectures.py`; "
        "ratios as above.",
        command="benchmarks/against_onnxruntime.py",
        draw=against_onnxruntime,
    ),
    Section(
        results="against_onnxruntime_skylake.json",
        title="Networks people run, on an older x86",
        about="Measured earlier on two cores of an Intel Xeon (Skylake, AVX-512 without VNNI), others at "
        "work on the same server.",
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
        results="bfloat16.json",
        title="Networks in bfloat16",
        about="Ours in bfloat16 and in float32, each tuned with as many trials, and ONNX Runtime in float32: "
        "it has no bfloat16 for most operators on CPUs. All ran in turn on one core of a CPU whose tile "
        "registers (AMX) multiply bfloat16 numbers; other networks were measured on its other cores.",
        command="benchmarks/bfloat16.py",
        draw=bfloat16,
    ),
)
