"""What other models' schedules are worth to a new model, against plain tuning.

    python benchmarks/transfer.py [--models …] [--trials-per-task 24] [--out FILE]
    python benchmarks/transfer.py --table          redraw the table from the recorded results

Every model is tuned plainly once; its records go into a bank of its own. Then each model
gets the banks of all others: `--reuse transfer-only` runs to its end, plain tuning gets the
same time, and the plain run's course tells when it reached what the transfer reached (if it
did not, its whole time counts, and the table says "more than").
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from transfer_runs import Run, in_turn, tuned
from tuneloom.app.bank_files import export_bank, import_bank
from tuneloom.app.models import list_tasks

MODELS = ("squeezenet", "resnet18", "resnet50", "inception_v1", "mobilenet_v2")
RESULTS = Path("benchmarks/results/transfer.json")
ONLY = "transfer-only"


def plain_run(model: str, trials_per_task: int, folder: Path) -> Run:
    """Tune without reuse, long, and leave the records as a bank."""
    count = len(list_tasks(f"zoo:{model}", "cpu", {}, str(folder / "empty.db")))
    run = tuned(model, "off", trials_per_task * count, folder / f"{model}.db")
    export_bank(folder / f"{model}.jsonl", str(folder / f"{model}.db"))
    return run


def compare(model: str, others: Sequence[str], plain: Run, folder: Path) -> dict[str, Any]:
    """Transfer from the others' banks, then plain tuning for the same time; bundles timed in turn."""
    bank = folder / f"bank-for-{model}.db"
    for other in others:
        import_bank(folder / f"{other}.jsonl", str(bank))
    bundles = {ONLY: folder / f"{model}-transfer", "plain": folder / f"{model}-plain"}
    given = tuned(model, ONLY, plain.trials, bank, out=bundles[ONLY])
    limited = tuned(
        model, "off", plain.trials, folder / f"{model}-short.db", out=bundles["plain"], seconds=given.tuning_s
    )
    latency = in_turn(bundles)
    matched = [at_s for at_s, seconds in plain.curve if seconds <= given.kernels_s]
    return {
        "model": model,
        "bank": list(others),
        "latency_s": latency,
        "faster_at_equal_time": latency["plain"] / latency[ONLY],
        "speed_up": {ONLY: given.before_s / given.after_s, "plain": limited.before_s / limited.after_s},
        "transfer_s": given.tuning_s,
        "plain_matches_s": matched[0] if matched else None,
        "plain_longest_s": plain.tuning_s,
        "runs": {ONLY: given.to_json(), "plain": limited.to_json(), "long": plain.to_json()},
    }


def times_as_long(row: dict[str, Any]) -> float:
    """How many times as long plain tuning took to match, at least."""
    return float((row["plain_matches_s"] or row["plain_longest_s"]) / row["transfer_s"])


def table(rows: list[dict[str, Any]]) -> str:
    """The results as a table in Markdown, with means."""
    lines = [
        "| model | transfer took | speed-up: transfer / plain, equal time | plain needs |",
        "| --- | --: | --: | --: |",
    ]
    for row in rows:
        both = f"{row['speed_up'][ONLY]:.2f} / {row['speed_up']['plain']:.2f}"
        more = "" if row["plain_matches_s"] is not None else "more than "
        lines.append(
            f"| {row['model']} | {row['transfer_s']:.0f} s | {both} | {more}{times_as_long(row):.1f} × |"
        )
    lines.append(f"| mean | | | {geometric_mean(max(times_as_long(row), 1e-3) for row in rows):.1f} × |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--trials-per-task", type=int, default=24)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        rows: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory(prefix="tuneloom-transfer-") as name:
            folder = Path(name)
            plain = {model: plain_run(model, options.trials_per_task, folder) for model in options.models}
            for model in options.models:
                others = [other for other in options.models if other != model]
                rows.append(compare(model, others, plain[model], folder))
                options.out.parent.mkdir(exist_ok=True)
                options.out.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(json.loads(options.out.read_text())))


if __name__ == "__main__":
    main()
