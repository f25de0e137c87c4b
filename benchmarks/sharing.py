"""What sharing schedules inside a model costs and saves, against tuning every kernel of it.

    python benchmarks/sharing.py [--models squeezenet …] [--trials-per-task 32] [--out FILE]
    python benchmarks/sharing.py --table           redraw the table from the recorded results

Every model is tuned twice with the same budget: all tasks on their own (`--reuse off`), and
shared (`--reuse share`, which takes a quarter of the trials by itself). Both bundles are
then timed in turn. Times of runs of different load are not comparable: the load is recorded.
"""

import argparse
import json
import tempfile
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

from transfer_runs import in_turn, tuned
from tuneloom.app.models import list_tasks

MODELS = ("squeezenet", "mobilenet_v2", "resnet50")
RESULTS = Path("benchmarks/results/sharing.json")


def compare(model: str, trials_per_task: int, seed: int, folder: Path) -> dict[str, Any]:
    """Tune one model both ways, each with an empty bank."""
    count = len(list_tasks(f"zoo:{model}", "cpu", {}, str(folder / "empty.db")))
    trials = trials_per_task * count
    bundles = {"off": folder / f"{model}-off", "share": folder / f"{model}-share"}
    runs = {
        reuse: tuned(model, reuse, trials, folder / f"{model}-{reuse}.db", out=out, seed=seed)
        for reuse, out in bundles.items()
    }
    latency = in_turn(bundles)
    return {
        "model": model,
        "seed": seed,
        "tasks": count,
        "budget": trials,
        "latency_s": latency,
        "performance": latency["off"] / latency["share"],
        "time_share": runs["share"].tuning_s / runs["off"].tuning_s,
        "runs": {reuse: run.to_json() for reuse, run in runs.items()},
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The results as a table in Markdown, with means."""
    lines = [
        "| model | tasks | trials, all / shared | time | performance |",
        "| --- | --: | --: | --: | --: |",
    ]
    for row in rows:
        spent = " / ".join(str(row["runs"][reuse]["trials"]) for reuse in ("off", "share"))
        gained = f"{row['time_share']:.0%} | {row['performance']:.0%}"
        lines.append(f"| {row['model']} | {row['tasks']} | {spent} | {gained} |")
    share = mean(row["time_share"] for row in rows)
    lines.append(f"| mean | | | {share:.0%} | {geometric_mean(r['performance'] for r in rows):.0%} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--trials-per-task", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        rows: list[dict[str, Any]] = []
        with tempfile.TemporaryDirectory(prefix="tuneloom-sharing-") as folder:
            for model in options.models:
                rows.append(compare(model, options.trials_per_task, options.seed, Path(folder)))
                options.out.parent.mkdir(exist_ok=True)
                options.out.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(json.loads(options.out.read_text())))


if __name__ == "__main__":
    main()
