"""The page of benchmarks: a dozen charts with a sentence each, drawn from the same results as the tables."""

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Any

Bar = tuple[str, float]
"""What is shown, and how much of it."""
_WIDTH, _NAMES, _ROW = 720.0, 250.0, 20.0
_STYLE = """\
text{font:12px sans-serif;fill:#444}
.bar{fill:#0f766e}
.over{fill:#b45309}
.line{stroke:#888;stroke-dasharray:4 3}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Bars from one results file; values beyond `line` are drawn in another colour.

    `say` makes the sentence below the chart. `page` is the page of tables behind it.
    """

    name: str
    results: str
    title: str
    page: str
    bars: Callable[[Any], Sequence[Bar]]
    say: Callable[[Sequence[Bar]], str]
    line: float | None = None


def svg(bars: Sequence[Bar], line: float | None) -> str:
    """Horizontal bars from the shortest to the longest."""
    height, longest = _ROW * len(bars) + 10, max(*(value for _, value in bars), line or 0.0)
    scale = (_WIDTH - _NAMES - 60) / longest
    rows = [_row(4 + _ROW * number, name, value, scale, line) for number, (name, value) in enumerate(bars)]
    mark = ""
    if line is not None:
        x = _NAMES + line * scale
        mark = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height:.0f}" class="line"/>'
    size = f'viewBox="0 0 {_WIDTH:.0f} {height:.0f}" width="{_WIDTH:.0f}" height="{height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{_STYLE}</style>{"".join(rows)}{mark}</svg>\n'
    )


def _row(y: float, name: str, value: float, scale: float, line: float | None) -> str:
    look = "over" if line is not None and value > line else "bar"
    end = _NAMES + max(1.0, value * scale)
    return (
        f'<text x="{_NAMES - 8:.0f}" y="{y + 12:.1f}" text-anchor="end">{html.escape(name)}</text>'
        f'<rect x="{_NAMES:.0f}" y="{y + 2:.1f}" width="{end - _NAMES:.1f}" height="13" class="{look}"/>'
        f'<text x="{end + 6:.1f}" y="{y + 12:.1f}">{value:.3g}</text>'
    )


def _ratios(value: str, *, cores: int = 1) -> Callable[[Any], list[Bar]]:
    """A ratio of each network on so many cores, with as many trials as were made for most of them."""

    def bars(rows: Any) -> list[Bar]:
        there = [row for row in rows if row["cores"] == cores and row.get(value)]
        most = max(row["trials"] for row in there)
        return _sorted((row["model"], row[value]) for row in there if row["trials"] == most)

    return bars


def _sorted(bars: Any) -> list[Bar]:
    return sorted(bars, key=lambda bar: bar[1])


def _against(other: str, where: str) -> Callable[[Sequence[Bar]], str]:
    def say(bars: Sequence[Bar]) -> str:
        values = [value for _, value in bars]
        mean, above = geometric_mean(values), sum(value > 1 for value in values)
        return (
            f"{where}, {len(values)} networks take {mean:.2f} of {other}'s time (geometric mean); "
            f"{above or 'none'} of them take{'s' if above == 1 else ''} longer. Shorter bars are better."
        )

    return say


def _named(row: Any) -> str:
    return f"{row['model']} {row['kernel'].removeprefix('fused_')}"[:30]


def _gpu(rows: Any) -> list[Bar]:
    return _sorted(
        (f"{row['network']} {row['dtype']}, batch {row['batch']}", row["ratio"])
        for row in rows
        if "ratio" in row
    )


def _graphs(rows: Any) -> list[Bar]:
    """What each graph takes of Inductor's time on a CPU."""
    both = [row for row in rows if all("seconds" in row.get(name, {}) for name in ("inductor", "tuneloom"))]
    return _sorted(
        (row["sample"].rpartition("/")[2][:34], row["tuneloom"]["seconds"] / row["inductor"]["seconds"])
        for row in both
        if row["device"] == "cpu"
    )


def _imports(rows: Any) -> list[Bar]:
    kinds = sorted({row["result"] for row in rows})
    return sorted(
        ((kind, float(sum(row["result"] == kind for row in rows))) for kind in kinds), key=lambda bar: -bar[1]
    )


CHARTS = (
    Chart(
        name="pace",
        results="against_stock.json",
        title="Trials a minute, against stock MetaSchedule",
        page="trials",
        bars=lambda rows: _sorted(
            (_named(row), row["ours_trials_per_minute"] / row["stock_trials_per_minute"]) for row in rows
        ),
        say=lambda bars: (
            f"Tuneloom makes {bars[0][1]:.1f} to {bars[-1][1]:.1f} times as many trials a minute as stock "
            "MetaSchedule on the same two cores, with the same evaluator. Longer bars are better."
        ),
    ),
    Chart(
        name="arm-best",
        results="against_best.json",
        title="Networks and files of wheels on ARM, against the best runtime",
        page="networks",
        bars=_ratios("ratio"),
        say=_against("the best runtime", "On one core of an ARM Neoverse N1, after 60 trials"),
        line=1.0,
    ),
    Chart(
        name="x86-best",
        results="against_best_x86.json",
        title="Networks and files of wheels on x86, against the best runtime",
        page="networks",
        bars=_ratios("ratio"),
        say=_against("the best runtime", "On one core of an Intel Xeon with AVX-512, after 60 trials"),
        line=1.0,
    ),
    Chart(
        name="arm",
        results="against_onnxruntime.json",
        title="Networks on ARM, against ONNX Runtime",
        page="networks",
        bars=_ratios("ratio"),
        say=_against("ONNX Runtime", "On one core of an ARM Neoverse N1"),
        line=1.0,
    ),
    Chart(
        name="arm-openvino",
        results="against_onnxruntime.json",
        title="Networks on ARM, against OpenVINO",
        page="networks",
        bars=_ratios("against_openvino"),
        say=_against("OpenVINO", "On one core of an ARM Neoverse N1"),
        line=1.0,
    ),
    Chart(
        name="roofline",
        results="roofline.json",
        title="Networks on ARM, against what the core can do",
        page="networks",
        bars=lambda data: _sorted((row["model"], row["share"]) for row in data["networks"])[::-1],
        say=lambda bars: (
            "The share of the core's measured peak that each network reaches (1: no kernel can be faster "
            f"without another algorithm), from {bars[-1][1]:.2f} to {bars[0][1]:.2f}; half of them reach "
            f"{bars[len(bars) // 2][1]:.2f} or more. Longer bars are better."
        ),
        line=1.0,
    ),
    Chart(
        name="x86",
        results="against_onnxruntime_x86.json",
        title="Networks on x86, against ONNX Runtime",
        page="networks",
        bars=_ratios("ratio"),
        say=_against("ONNX Runtime", "On one core of an Intel Xeon with AVX-512"),
        line=1.0,
    ),
    Chart(
        name="x86-two",
        results="against_onnxruntime_x86.json",
        title="Two cores of the same Xeon",
        page="networks",
        bars=_ratios("ratio", cores=2),
        say=_against("ONNX Runtime", "On two cores"),
        line=1.0,
    ),
    Chart(
        name="server",
        results="against_onnxruntime_server.json",
        title="Networks on an x86 server",
        page="networks",
        bars=_ratios("ratio"),
        say=_against("ONNX Runtime", "On one core of a server"),
        line=1.0,
    ),
    Chart(
        name="int8",
        results="int8.json",
        title="Networks in int8",
        page="networks",
        bars=lambda rows: _sorted((row["model"], row["ratio"]) for row in rows),
        say=_against("ONNX Runtime", "In int8 on both sides"),
        line=1.0,
    ),
    Chart(
        name="bfloat16",
        results="bfloat16.json",
        title="What bfloat16 gains",
        page="networks",
        bars=lambda rows: _sorted((row["model"], row["ratio"]) for row in rows),
        say=_against("float32", "In bfloat16"),
        line=1.0,
    ),
    Chart(
        name="gpu",
        results="gpu_models.jsonl",
        title="Networks on an H200, against torch.compile",
        page="gpus",
        bars=_gpu,
        say=_against("torch.compile", "On an NVIDIA H200"),
        line=1.0,
    ),
    Chart(
        name="graphs",
        results="graphnet.jsonl",
        title="Graphs of GraphNet, against Inductor",
        page="graphs",
        bars=_graphs,
        say=_against("Inductor", "On one core of an x86 server"),
        line=1.0,
    ),
    Chart(
        name="policies",
        results="simulated_policies.json",
        title="Makespan against its bound",
        page="scheduling",
        bars=lambda data: [
            (name, data["thesis"][-1][name])
            for name in ("load-aware", "interleaved", "sequential", "synchronous")
        ],
        say=lambda bars: (
            f"With sixteen jobs, `load-aware` needs {bars[0][1]:.2f} of the least possible time and "
            f"`sequential` {bars[2][1]:.2f}. Shorter bars are better."
        ),
        line=1.0,
    ),
    Chart(
        name="core",
        results="core_overhead.json",
        title="Microseconds for one decision",
        page="scheduling",
        bars=lambda data: [
            (f"{row['policy']}, {row['jobs']} jobs", row["median_us"]) for row in data["decisions"]
        ],
        say=lambda bars: (
            f"With 1,000 devices the scheduling core decides in at most {max(v for _, v in bars):.0f} µs "
            "(medians)."
        ),
    ),
    Chart(
        name="operators",
        results="onnx_operators.json",
        title="Node tests of ONNX",
        page="models",
        bars=_imports,
        say=lambda bars: (
            f"Of {sum(v for _, v in bars):,.0f} node tests of ONNX, {bars[0][1]:,.0f} end as `{bars[0][0]}`."
        ),
    ),
)
