"""Networks on GPUs against torch.compile."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import geometric_mean
from typing import Any

from sections.drawing import HERE, Rows, Section, table

CONVOLUTIONS = ("resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "convnext_tiny")
TRANSFORMERS = ("encoder", "vit_s", "bert_base", "swin_t", "whisper_tiny")
SEARCHED = "max-autotune"
RIVALS = HERE / "results" / "gpu_models.rivals.jsonl"
"""PyTorch's times, also of rows that ours are missing of."""
EARLIER_ALGORITHMS = 8
"""How many of cuBLASLt's algorithms were tried before rows said so."""


def headline(rows: Rows) -> str:
    """What the README says."""
    found = [row for row in _newest(rows).values() if "ratio" in row]
    nets, transformers = (
        geometric_mean(row["ratio"] for row in found if row["network"] in names)
        for names in (CONVOLUTIONS, TRANSFORMERS)
    )
    slower = sum(row["ratio"] > 1 for row in found)
    return (
        f"convolutional networks take {nets:.2f} and transformers {transformers:.2f} of the time that "
        f"`torch.compile` needs with CUDA graphs (geometric means; {slower or 'none'} of {len(found)} rows "
        "of networks, types and batch sizes above 1)."
    )


def _newest(rows: Rows) -> dict[tuple[str, str, int], Mapping[str, Any]]:
    return {(row["network"], row["dtype"], row["batch"]): row for row in rows}


def gpu_models(rows: Rows) -> str:
    """One line for each row, the newest of its kind, and the geometric means of the ratios."""
    newest = _newest(rows)
    found = [newest[key] for key in sorted(newest, key=_place)]
    missing = sorted(_timed() - newest.keys(), key=_place)
    columns = (
        "network", "type", "batch", "ours, ms", "torch.compile, ms", "its best mode", "ratio", "layout",
        "tuning, s", "trials", "a minute", "GPU busy", "after a minute", "difference",
        "torch.compile's", "remarks",
    )  # fmt: skip
    told = (_machine(found), _commits(found), _searched(found), _missing(missing))
    return "\n\n".join((_summary(found), table(columns, map(_line, found)), " ".join(filter(None, told))))


def _timed() -> set[tuple[str, str, int]]:
    """The rows that PyTorch's times are known of."""
    lines = RIVALS.read_text().splitlines() if RIVALS.is_file() else []
    return {(row["network"], row["dtype"], row["batch"]) for row in map(json.loads, lines)}


def _missing(missing: Sequence[tuple[str, str, int]]) -> str:
    names = ", ".join(f"{network} in {dtype} with batch {batch}" for network, dtype, batch in missing)
    return f"Not measured with Tuneloom: {names}." if names else ""


def _commits(rows: Rows) -> str:
    """Of which commits rows are, those with the most rows first."""
    counts = Counter(row["commit"] for row in rows if row.get("commit"))
    if len(counts) == 1:
        return f"All rows are of commit {next(iter(counts))}."
    parts = ", ".join(f"{commit} ({count})" for commit, count in counts.most_common())
    return f"Rows are of several commits: {parts}." if parts else ""


def _searched(rows: Rows) -> str:
    """Where max-autotune was timed as well."""
    names = [row["network"] for row in rows if any(one["mode"] == SEARCHED for one in row["rivals"])]
    tried = ", ".join(dict.fromkeys(names))
    return f"`{SEARCHED}` was timed for {tried or 'no row'}."


def _place(key: tuple[str, str, int]) -> tuple[int, str, str, int]:
    network, dtype, batch = key
    order = (*CONVOLUTIONS, *TRANSFORMERS)
    return (order.index(network) if network in order else len(order), network, dtype, batch)


def _summary(rows: Rows) -> str:
    groups = {
        "convolutional networks": [row for row in rows if row["network"] in CONVOLUTIONS],
        "transformers": [row for row in rows if row["network"] in TRANSFORMERS],
        "others": [row for row in rows if row["network"] not in (*CONVOLUTIONS, *TRANSFORMERS)],
    }
    words = [f"{name} {_ratios(some)}" for name, some in groups.items() if some]
    return f"Geometric means of the ratios: {'; '.join(words)}."


def _ratios(rows: Rows) -> str:
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if not ratios:
        return "not compared"
    slower = sum(ratio > 1 for ratio in ratios)
    return f"{geometric_mean(ratios):.2f} ({len(ratios)} of {len(rows)} rows compared, {slower} above 1)"


def _line(row: Mapping[str, Any]) -> Sequence[object]:
    def told(name: str, form: str, times: float = 1.0) -> str:
        return "–" if row.get(name) is None else form.format(row[name] * times)

    return (
        row["network"], row["dtype"], row["batch"], told("ours_s", "{:.3f}", 1e3),
        told("torch_s", "{:.3f}", 1e3), row.get("torch_mode", "–"), told("ratio", "{:.2f}"),
        row.get("layout") or "–", told("tuning_s", "{:.0f}"), row.get("trials", "–"),
        told("trials_a_minute", "{:.0f}"),
        told("gpu_busy", "{:.0%}"), told("after_a_minute", "{:.2f}"), told("difference", "{:.1e}"),
        told("torch_difference", "{:.1e}"), row.get("error", "").replace("|", "/"),
    )  # fmt: skip


def _machine(rows: Rows) -> str:
    """On which GPU and with which versions the rows were measured."""
    gpus = dict.fromkeys(row["state"]["gpu"] for row in rows if "state" in row)
    versions = dict.fromkeys(f"PyTorch {row['torch']}, TVM {row['tvm']}" for row in rows if row.get("torch"))
    return f"Measured on {', '.join(gpus) or 'no GPU'} with {'; '.join(versions)}."


def gpu_kernels(rows: Rows) -> str:
    """One line for each kernel, the newest of its kind."""
    newest = {row["problem"]: row for row in rows}
    columns = ("kernel", "ours, µs", "cuBLASLt, µs", "cuDNN, µs", "PyTorch, µs", "the fastest against ours")
    tried = {row.get("cublaslt_tried", EARLIER_ALGORITHMS) for row in newest.values() if row["cublaslt_us"]}
    told = f"Algorithms of cuBLASLt that were tried: {', '.join(map(str, sorted(tried)))}." if tried else ""
    return f"{table(columns, map(_kernel, newest.values()))}\n\n{told}".strip()


def _kernel(row: Mapping[str, Any]) -> Sequence[object]:
    times = [row.get(f"{name}_us") for name in ("cublaslt", "cudnn", "torch")]
    best = min((one for one in times if one is not None and one > 0), default=None)
    against = "–" if best is None else f"{best / row['ours_us']:.2f}"
    return (row["problem"], f"{row['ours_us']:.1f}", *map(_microseconds, times), against)


def _microseconds(value: float | None) -> str:
    return f"{value:.1f}" if value is not None and value > 0 else "–"  # NaN where there is no such kernel


def gpu_norms(found: Mapping[str, Any]) -> str:
    columns = ("rows x width x depth", "one kernel, us", "two, us", "one / two", "the norm alone, us")
    lines = [
        (
            f"{row['rows']} x {row['width']} x {row['depth']}",
            *(_microseconds(row[name]) for name in ("one_us", "two_us")),
            f"{row['one_us'] / row['two_us']:.1f}",
            _microseconds(row["norm_us"]),
        )
        for row in found["rows"]
    ]
    return table(columns, lines)


def gpu_pace(found: Mapping[str, Any]) -> str:
    """Both sides of one network."""
    ours, stock = found["ours"], found["stock"]
    pace = f"{stock['trials_a_minute']:.0f}" if stock.get("trials") else f"none in {stock['seconds']:.0f} s"
    bound = "at least " if found.get("ratio_at_least") else ""
    lines = [
        ("trials a minute", f"{ours['trials_a_minute']:.0f}"),
        ("stock MetaSchedule's", pace),
        ("its builds that were done", stock.get("built", "–")),
        ("times as many", f"{bound}{found['ratio']:.1f}" if found["ratio"] else "–"),
        ("GPU busy", f"{ours['gpu_busy']:.0%}"),
        ("kernels after a minute, against the end", f"{ours['after_a_minute']:.2f}"),
    ]
    return table((found["row"], ""), lines)


def gpu_reuse(rows: Rows) -> str:
    """One line for each kind of run, the newest."""
    newest = {(row["network"], row["how"]): row for row in rows}

    def told(row: Mapping[str, Any], name: str) -> str:
        return "–" if row.get(name) is None else f"{1e3 * row[name]:.3g}"

    names = ("latency_before_s", "latency_after_s", "energy_j")
    lines = [
        (
            row["network"],
            row["how"],
            row["trials"],
            *(told(row, name) for name in names),
            f"{row['took_s']:.0f}",
            f"{row['ratio']:.2f}" if row.get("ratio") else "–",
        )
        for row in newest.values()
    ]
    columns = ("network", "from", "trials", "untuned, ms", "tuned, ms", "mJ a run", "took, s", "in turn")
    return table(columns, lines)


def claim_builds(found: Mapping[str, Any]) -> str:
    """One line for each template, and all together."""
    rows = found["templates"]
    lines = [
        (row["template"], row["kernels"], f"{row['refused']:.0%}", row["built"], row["failed"])
        for row in rows
    ]
    sums = [sum(row[name] for row in rows) for name in ("kernels", "built", "failed")]
    lines.append(("all", sums[0], "", *sums[1:]))
    return table(("template", "kernels", "refused beforehand", "built", "failed to build"), lines)


SECTIONS = (
    Section(
        results="gpu_models.jsonl",
        title="Networks on a GPU, against torch.compile",
        about="Each row is tuned from an empty store, or several as one run from the same store; then "
        "`tuning` is a row's part of the run's time, and its own pace is not shown. `torch.compile`: "
        "the best of mode `reduce-overhead` in both memory formats, and of `max-autotune` in the rows that "
        "are named below the table; TF32 is off on both sides. `layout`: the one that was faster in the "
        "whole model, where both were timed. Single runs with inputs on the GPU, each waited for; medians. "
        "`tuning`: the whole command, with import, search and checks. `GPU busy`: the share "
        "of the time in which a built candidate waited or ran. `after a minute`: the sum of all "
        "kernels as known one minute after the command was started, against the final one. "
        "Differences are relative to eager execution in float32.",
        command="benchmarks/gpu_models.py",
        draw=gpu_models,
    ),
    Section(
        results="gpu_templates.jsonl",
        title="Kernels on a GPU, against cuBLASLt, cuDNN and PyTorch",
        about="The best of some dozens of configurations of a template, of cuBLASLt's algorithms for "
        "products and cuDNN's for convolutions, and PyTorch's own kernels (for products, two of them); "
        "medians in CUDA graphs, inputs rotated where they would fit the cache. "
        "Above 1, the template is faster than all; models use the library where that is faster.",
        command="benchmarks/gpu_templates.py",
        draw=gpu_kernels,
    ),
    Section(
        results="gpu_norms.json",
        title="A layer norm in the product before it",
        about="A product, a residual and a layer norm in float16, as one kernel or as two: each the best of "
        "its configurations, in CUDA graphs. One kernel's blocks have to hold whole rows, so there are too "
        "few of them: models keep the norm a kernel of its own, which takes what the last column says.",
        command="benchmarks/gpu_norms.py",
        draw=gpu_norms,
    ),
    Section(
        results="gpu_pace.json",
        title="Trials on a GPU, against stock MetaSchedule",
        about="A network from an empty store; stock MetaSchedule gets the convolution or product with the "
        "most arithmetic, alone. If it measured none in its time, builds that were done bound its trials.",
        command="benchmarks/gpu_pace.py",
        draw=gpu_pace,
    ),
    Section(
        results="gpu_reuse.jsonl",
        title="Records on a GPU: the same network again, other networks, energy",
        about="Networks in float16 with batch 1. `took`: the whole command. `in turn`: this bundle's time "
        "against that of the row above, measured in turn within one process.",
        command="benchmarks/gpu_reuse.py",
        draw=gpu_reuse,
    ),
    Section(
        results="claim_builds.json",
        title="Points of Triton spaces that fail to build",
        about="Points at random of the spaces of some kernels of each template. Templates refuse by rules "
        "what would not fit; some of the rest were compiled for sm_90 without a GPU. Presampling, which "
        "kernel jobs have, learns from builds alone what fails to build; where nothing does, it can't pay, "
        "so models have none. Failures on the device are learned by the model of validity.",
        command="benchmarks/claim_builds.py",
        draw=claim_builds,
    ),
)
