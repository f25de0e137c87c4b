"""Which models come in, and whether they compute the same."""

from collections.abc import Mapping
from typing import Any

from sections.drawing import Rows, Section, table


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


SECTIONS = (
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
        about="A second set, untuned, tried after all of the first set agreed: files in other packages, and "
        "models that scikit-learn's exporter made.",
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
        about="The cases that the package `onnx` ships, by operator: how many pass in TVM alone as they are, "
        "with their further inputs as constants, and with ONNX Runtime's help. `theirs`: it gives another "
        "answer than the case. `refused`: rejected by name, for instance because of sequences as outputs.",
        command="benchmarks/onnx_operators.py",
        draw=operators,
    ),
)
