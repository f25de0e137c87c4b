"""Networks on GPUs against torch.compile."""

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import Any

from sections.drawing import Rows, Section, table

CONVOLUTIONS = ("resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0", "convnext_tiny")
TRANSFORMERS = ("encoder", "vit_s", "bert_base", "swin_t", "whisper_tiny")


def gpu_models(rows: Rows) -> str:
    """One line for each row, the newest of its kind, and the geometric means of the ratios."""
    newest = {(row["network"], row["dtype"], row["batch"]): row for row in rows}
    found = [newest[key] for key in sorted(newest, key=_place)]
    columns = (
        "network", "type", "batch", "ours, ms", "torch.compile, ms", "its best mode", "ratio", "tuning, s",
        "trials", "a minute", "GPU busy", "after a minute", "difference", "torch.compile's", "remarks",
    )  # fmt: skip
    return f"{_summary(found)}\n\n{table(columns, map(_line, found))}\n\n{_machine(found)}"


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
    mean = exp(sum(map(log, ratios)) / len(ratios))
    slower = sum(ratio > 1 for ratio in ratios)
    return f"{mean:.2f} ({len(ratios)} of {len(rows)} rows compared, {slower} above 1)"


def _line(row: Mapping[str, Any]) -> Sequence[object]:
    def told(name: str, form: str, times: float = 1.0) -> str:
        return "–" if row.get(name) is None else form.format(row[name] * times)

    return (
        row["network"], row["dtype"], row["batch"], told("ours_s", "{:.3f}", 1e3),
        told("torch_s", "{:.3f}", 1e3), row.get("torch_mode", "–"), told("ratio", "{:.2f}"),
        told("tuning_s", "{:.0f}"), row.get("trials", "–"), told("trials_a_minute", "{:.0f}"),
        told("gpu_busy", "{:.0%}"), told("after_a_minute", "{:.2f}"), told("difference", "{:.1e}"),
        told("torch_difference", "{:.1e}"), row.get("error", "").replace("|", "/"),
    )  # fmt: skip


def _machine(rows: Rows) -> str:
    """On which GPU and with which versions the rows were measured."""
    gpus = dict.fromkeys(row["state"]["gpu"] for row in rows if "state" in row)
    versions = dict.fromkeys(f"PyTorch {row['torch']}, TVM {row['tvm']}" for row in rows if row.get("torch"))
    return f"Measured on {', '.join(gpus) or 'no GPU'} with {'; '.join(versions)}."


SECTIONS = (
    Section(
        results="gpu_models.jsonl",
        title="Networks on a GPU, against torch.compile",
        about="Each row is tuned from an empty store, or several as one run from the same store; then "
        "`tuning` is a row's part of the run's time, and its own pace is not shown. `torch.compile`: "
        "the best of mode `reduce-overhead` in both memory formats, and of `max-autotune` where that "
        "was tried; TF32 is off on both sides. Single runs with inputs on the GPU, each waited for; "
        "medians. `tuning`: the whole command, with import, search and checks. `GPU busy`: the share "
        "of the time in which a built candidate waited or ran. `after a minute`: the sum of all "
        "kernels as known one minute after the command was started, against the final one. "
        "Differences are relative to eager execution in float32.",
        command="benchmarks/gpu_models.py",
        draw=gpu_models,
    ),
)
