"""Where convolutions are rounded or transformed: what was measured, beside the rules drawn from it."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from sections.drawing import Rows, Section, table
from tuneloom.backends.cpu.layouts.kernels.winograd import TransformCosts
from tuneloom.backends.cuda.tf32 import convolves_in_tf32

ROUNDED = 3e-5
"""Relative errors above this come from TF32: without it they are below 1e-6."""


def tf32(rows: Rows) -> str:
    """How often the rule and PyTorch agree, and what convolutions cost that only PyTorch rounds."""
    found = [row for row in rows if not row["turned"]]
    counts = Counter((row["tf32"]["error"] > ROUNDED, rounded_by_us(row)) for row in found)
    lines = [(f"TF32 in {where}", counts[key]) for key, where in _WHERE.items()]
    total = sum(row["tf32"]["ms"] for row in found)
    alone = [row for row in found if row["tf32"]["error"] > ROUNDED and not rounded_by_us(row)]
    more = sum(row["ieee"]["ms"] - row["tf32"]["ms"] for row in alone)
    cost = f"Without TF32, cuDNN takes {more:.2f} ms longer for those that only PyTorch rounds"
    words = f"{cost}, of {total:.1f} ms for all {len(found)}."
    return "\n\n".join((table(("convolutions", "count"), lines), words))


_WHERE = {
    (True, True): "both",
    (False, False): "neither",
    (True, False): "PyTorch alone",
    (False, True): "Tuneloom alone",
}


def rounded_by_us(row: Mapping[str, Any]) -> bool:
    """Whether Tuneloom computes a convolution in TF32 where PyTorch's settings allow it."""
    letters = "NCHW" if len(row["image"]) == 4 else "NCW"
    attributes = {"strides": row["strides"], "groups": row["groups"], "data_layout": letters}
    attributes |= {"kernel_layout": letters.replace("NC", "OI"), "out_layout": letters}
    image, filters = row["image"], row["filters"]
    windows = zip(image[2:], filters[2:], row["strides"], row["padding"], row["dilation"], strict=True)
    extents = [(n + 2 * pad - gap * (taps - 1) - 1) // step + 1 for n, taps, step, pad, gap in windows]
    return convolves_in_tf32(attributes, tuple(filters), (image[0], filters[0], *extents))


def winograd(rows: Rows) -> str:
    """Direct and transformed convolutions, one line each."""
    columns = ("CPU", "channels", "image", "direct", "transformed", "estimated")
    return table(columns, map(_line, rows))


def estimated(row: Mapping[str, Any]) -> float:
    """The cost of a transformed convolution relative to a direct one, as layouts are chosen by it."""
    costs = TransformCosts.of(row["lanes"], has_tiles=row["has_tiles"])
    return costs.ratio(row["inside"], row["outside"], *row["size"])


def _line(row: Mapping[str, Any]) -> tuple[str, ...]:
    ratio = row["transformed_ms"] / row["direct_ms"]
    channels, size = f"{row['inside']} → {row['outside']}", "×".join(map(str, row["size"]))
    times = f"{row['direct_ms']:.3f} ms", f"{ratio:.2f} of it", f"{estimated(row):.2f}"
    return (row["cpu"], channels, size, *times)


GPU_SECTIONS = (
    Section(
        results="gpu_tf32.jsonl",
        title="Convolutions that PyTorch computes in TF32",
        about=(
            "All convolutions of the graphs of GraphNet's development sample, in PyTorch with its default "
            "settings on an H200 (cuDNN 9.19): which of them are rounded to TF32, by their error, and which "
            "of them Tuneloom rounds."
        ),
        command="benchmarks/gpu_tf32.py SAMPLES --seeds 1 2 3",
        draw=tf32,
    ),
)
CPU_SECTIONS = (
    Section(
        results="winograd.jsonl",
        title="3×3 convolutions, directly and transformed",
        about=(
            "First guesses on one core. Layers are transformed (Winograd, 4×4 outputs) where the estimate is "
            "below 0.8."
        ),
        command="benchmarks/winograd.py",
        draw=winograd,
    ),
)
