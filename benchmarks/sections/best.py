"""Networks and files of wheels against the best of the runtimes that people use."""

from collections.abc import Callable, Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from sections.drawing import Rows, Section, table

NAMES = {"onnxruntime": "ONNX Runtime", "litert": "LiteRT", "openvino": "OpenVINO"}
_LATE_S, _SHARE = 15.0, 0.2


def against_best(rows: Rows) -> str:
    ordered = sorted((row for row in rows if "ratio" in row), key=lambda row: float(row["ratio"]))
    columns = ("model", "trials", "ours", "best of the others", "ours / best", *NAMES.values())
    more = ("bundle / best", "last trial to bundle", "outputs differ by")
    return f"{summary(ordered)}\n\n{table((*columns, *more), [_row(row) for row in ordered])}"


def summary(rows: Rows) -> str:
    """What the rows come to, in sentences."""
    ratios, bundles = ([row[key] for row in rows] for key in ("ratio", "bundle_ratio"))
    late = sum(row["finish_s"] > _LATE_S for row in rows)
    long = sum(row["finish_s"] > _SHARE * row["job_s"] for row in rows)
    return (
        f"{len(rows)} models take {geometric_mean(ratios):.2f} of the best runtime's time (geometric mean; "
        f"above 1.0: {_count(ratios, 1.0)}, above 1.1: {_count(ratios, 1.1)}, highest {max(ratios):.2f}). "
        f"Bundles as they are written take {geometric_mean(bundles):.2f} (above 1.01: "
        f"{_count(bundles, 1.01)}, highest {max(bundles):.2f}). Jobs of more than 15 s from their last "
        f"trial to the bundle: {late}; more than a fifth of their time: {long}."
    )


def _count(values: Sequence[float], limit: float) -> int:
    return sum(value > limit for value in values)


def _row(row: Mapping[str, Any]) -> Sequence[object]:
    low, high = row["spread"]
    others = [f"{row['against'][name]:.2f}" if name in row["against"] else "–" for name in NAMES]
    made = (
        row["trials"] if row["trials_made"] >= row["trials"] else f"{row['trials_made']} of {row['trials']}"
    )
    times = [f"{seconds * 1e3:.2f} ms" for seconds in (row["ours_s"], row["others_s"][row["best"]])]
    bundle = f"{row['bundle_ratio']:.2f}" + (f" ({row['left']} left)" if row["left"] else "")
    end = f"{row['finish_s']:.0f} s, {row['finish_s'] / row['job_s']:.0%}"
    ratio = f"{row['ratio']:.2f} ({low:.2f}–{high:.2f})"
    differ = max(row["differences"].values(), default=0.0)
    return (row["model"], made, *times, ratio, *others, bundle, end, f"{differ:.0e}")


def best_of(results: str, where: str, about: str) -> Section:
    """The section of one machine."""
    draw: Callable[[Any], str] = against_best
    return Section(
        results=results,
        title=f"Networks and files of wheels on {where}, against the best runtime",
        about=f"{about} Each is tuned with 60 trials and compiled by TVM alone, then timed in turn with ONNX "
        "Runtime, LiteRT and OpenVINO on one core, as far as they take the file; CPU seconds of the "
        "process, the 20 % quantile of each side. A bundle may leave all of a model, or parts, to another "
        "runtime. The end of the job is by the clock.",
        command="benchmarks/against_best.py",
        draw=draw,
    )


SECTIONS = (
    best_of(
        "against_best.json",
        "ARM",
        "One of two cores of an ARM Neoverse N1, with other programs at work beside it at a lower priority: "
        "the clock shows more than a quiet machine would.",
    ),
    best_of(
        "against_best_x86.json",
        "x86",
        "One of two cores of an Intel Xeon with AVX-512 and AMX. Tests ran on the other core beside half of "
        "the rows; five of these were repeated on the quiet machine, since both sides varied by a quarter.",
    ),
)
