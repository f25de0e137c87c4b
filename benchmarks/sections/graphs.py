"""Graphs of GraphNet: in PyTorch, Inductor and Tuneloom, and whether they are computed right."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from graphnet import scores
from sections.drawing import Rows, Section, as_it_is, table


def tuned(rows: Rows) -> str:
    """Scores and graphs of each device and number type."""
    kinds = dict.fromkeys((row["device"], row["dtype"]) for row in rows)
    return "\n\n".join(
        _of_kind([row for row in rows if (row["device"], row["dtype"]) == kind], *kind) for kind in kinds
    )


def _of_kind(rows: Rows, device: str, dtype: str) -> str:
    run = [row for row in rows if "error" not in row["eager"]]
    words = f"**{device}, {dtype}**: {len(run)} graphs{_machines(run)}."
    if not run:
        return words
    return "\n\n".join((words, _summary(run), _scores(run), _graphs(run)))


def _machines(rows: Rows) -> str:
    """On which CPUs graphs were measured, if they differ."""
    counts = Counter(str(row.get("cpu", "")) for row in rows)
    parts = (f"{count} on {cpu}" for cpu, count in counts.most_common())
    return f" ({', '.join(parts)})" if len(counts) > 1 else ""


def _summary(rows: Rows) -> str:
    columns = (
        "compiler",
        "right at t = -3",
        "median speed-up",
        "least speed-up",
        "over 2 % slower",
        "stay in PyTorch",
    )
    return table(columns, [_summed_up(rows, name) for name in scores.compilers(rows)])


def _summed_up(rows: Rows, name: str) -> Sequence[object]:
    speeds = [speed(row, name) for row in rows if "seconds" in row[name]]
    right = sum((row[name].get("tolerance") or 0) <= -3 for row in rows)
    stay = sum(row[name].get("in_use") == "PyTorch" for row in rows) if name == "tuneloom" else "–"
    slower = sum(one < 1 / 1.02 for one in speeds)
    return (name, f"{right} of {len(rows)}", f"{median(speeds):.2f}", f"{min(speeds):.2f}", slower, stay)


def _scores(rows: Rows) -> str:
    names = scores.compilers(rows)
    lines = [(t, *(f"{scores.score(rows, name, t):.3f}" for name in names)) for t in scores.TOLERANCES]
    return table(("t", *(f"ES(t) of {name}" for name in names)), lines)


def _graphs(rows: Rows) -> str:
    names = scores.compilers(rows)
    columns = ("graph", "eager", *(f"{name}, times as fast (t)" for name in names), "runs")
    return table(columns, [_graph(row, names) for row in sorted(rows, key=lambda row: str(row["sample"]))])


def _graph(row: Mapping[str, Any], names: Sequence[str]) -> Sequence[object]:
    cells = [row[name].get("error") or f"{speed(row, name):.2f} ({row[name]['tolerance']})" for name in names]
    return (
        row["sample"],
        f"{row['eager']['seconds'] * 1e3:.2f} ms",
        *cells,
        row["tuneloom"].get("in_use", "–"),
    )


def speed(row: Mapping[str, Any], name: str) -> float:
    """How many times as fast as eager PyTorch a graph is."""
    return float(row["eager"]["seconds"] / row[name]["seconds"])


def checked(rows: Rows) -> str:
    """How many graphs are right, those of further seeds apart, and all that are not."""
    developed = [row for row in rows if "seeds" not in row]
    words = f"Right at t = -3: {_right(developed)} of the development sample"
    others = dict.fromkeys(tuple(row["seeds"]) for row in rows if "seeds" in row)
    for seeds in others:
        unseen = [row for row in rows if tuple(row.get("seeds", ())) == seeds]
        words += f", and {_right(unseen)} of seeds {', '.join(map(str, seeds[:-1]))} and {seeds[-1]}"
    words += ", with which nothing was developed" if others else ""
    failing = sum("eager_error" in row for row in rows)
    words += f"; {failing} more fail in PyTorch" if failing else ""
    lines = [(row["sample"], row.get("error") or f"t = {row['tolerance']}") for row in rows if _is_wrong(row)]
    return f"{words}.\n\n{table(('graph', 'result'), lines)}" if lines else f"{words}."


def _right(rows: Rows) -> str:
    run = [row for row in rows if "eager_error" not in row]
    return f"{sum(not _is_wrong(row) for row in run)} of {len(run)} graphs"


def _is_wrong(row: Mapping[str, Any]) -> bool:
    missing = row.get("tolerance") is None or row["tolerance"] > -3
    return missing and "eager_error" not in row


def of_sizes(data: Mapping[str, Any]) -> str:
    """One bundle for all sizes beside bundles for single sizes, network by network."""
    return "\n\n".join(map(_sizes_of, data["results"]))


def _sizes_of(found: Mapping[str, Any]) -> str:
    rows = [
        (
            row["size"],
            ", ".join(map(str, row["programs"])),
            f"{row['varying_s'] * 1e3:.2f} ms",
            f"{row['alone_s'] * 1e3:.2f} ms",
            f"{row['varying_s'] / row['alone_s']:.2f}",
        )
        for row in found["rows"]
    ]
    words = f"**{found['network']}**, sizes 1 to {found['high']}: {found['geometric_mean']:.2f} times as "
    words += f"long (geometric mean), one run of each size {found['total']:.2f} times."
    columns = ("size", "runs in the programs for", "all sizes", "this size alone", "ratio")
    return f"{words}\n\n{table(columns, rows)}"


SECTIONS = (
    Section(
        results="graphnet.jsonl",
        title="Graphs of GraphNet, against eager PyTorch and Inductor",
        about="Graphs of the development sample (seeds 1 to 3), on GPUs in another order, as far as there "
        "was time; on GPUs also 41 of seeds 4 and 5. Each graph had one core and one thread, while "
        "others ran on the cores beside it; all sides took turns within one process, which on a GPU "
        "(an H200, 16 graphs at once) had the device to itself meanwhile. Graphs of less than a "
        "millisecond run several times in a turn, and on CPUs the order of sides is drawn anew for "
        "every round; in older rows, and on the GPU, it was fixed or rotated. "
        "There, `reduce-overhead` is Inductor with CUDA graphs; PyTorch's settings are its defaults, "
        "which allow TF32 in convolutions. Tuneloom made 60 trials a graph from an empty store (on a "
        "GPU as many of them as fit into 10 s); the tuned program is used only where it is faster "
        "than PyTorch's. ES(t) is GraphNet's score: the geometric mean of speed-ups, where graphs "
        "that are wrong at tolerance t or fail count as 0.1; eager PyTorch has 1 by definition. In "
        "brackets: the least t at which outputs agree.",
        command="benchmarks/graphnet/run.py",
        draw=tuned,
    ),
    Section(
        results="graphnet_check.jsonl",
        title="Graphs of GraphNet, computed without tuning",
        about="The development sample (seeds 1 to 3, 40 graphs each, at most 40 million weights), two "
        "further graphs, and graphs of other seeds: exported, imported, compiled with default schedules and "
        "compared with PyTorch. Most of the first checks were made with weights drawn more widely than "
        "GraphNet draws them.",
        command="benchmarks/graphnet/check.py",
        draw=checked,
    ),
    Section(
        results="pytorch_backend.json",
        title="torch.compile with Tuneloom beside Inductor",
        about="`calls`: microseconds of a call of a small network, in turn within one process; `dynamo_us` "
        "is that of a backend that compiles nothing. `background`: how much longer calls take while the "
        "network is tuned. For two networks, seconds from the start of `torch.compile` to the first answer "
        "in fresh processes: with empty caches, and `warm` with what an earlier process left. `ratio`: "
        "against Inductor with empty caches. `second_process_ready_s`: until the stored program answers.",
        command="benchmarks/pytorch_backend.py",
        draw=as_it_is,
    ),
    Section(
        results="varying_shapes.json",
        title="One bundle for all sizes, beside bundles for single sizes",
        about="A small BERT and a small convolutional network. The bundle for all sizes got four times the "
        "trials that each of twenty sampled sizes got alone, in a store of its own. Best of runs in turns, "
        "from arrays to arrays; one core of two, while the other network was measured on the other.",
        command="benchmarks/varying_shapes.py --small --trials 100 --samples 20",
        draw=of_sizes,
    ),
)
