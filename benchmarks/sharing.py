"""What sharing schedules inside a model costs and saves, against tuning every kernel of it.

    python benchmarks/sharing.py [--models squeezenet …] [--trials-per-task 48] [--kept FOLDER]
    python benchmarks/sharing.py --table           redraw the table from the recorded results

Every model is tuned twice from an empty bank with the same budget: all tasks on their own
(`--reuse off`), and shared (`--reuse share`, which takes a quarter of the trials by itself).
Both bundles are then timed in turn: that is the performance. Time counts from the end of the
import to the last trial, the planning of clusters included. Plain runs are kept in a folder
if one is given; benchmarks/transfer.py goes on from them.
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

import from_nothing  # noqa: F401
from transfer_runs import count_tasks, in_turn, keep, plain, plain_store, rows_of, told_cost, tuned

MODELS = ("squeezenet", "mobilenet_v2", "resnet50")
RESULTS = Path(__file__).parent / "results" / "sharing.json"
LEAST, MOST_TIME, LEAST_OF_ONE = 0.98, 0.28, 0.90


def compare(model: str, trials_per_task: int, seed: int, folder: Path) -> dict[str, Any]:
    """Tune one model both ways."""
    full = plain(model, trials_per_task, seed, folder)
    place = folder / f"share-{model}-{trials_per_task}-{seed}.db"
    place.unlink(missing_ok=True)
    bundle = place.with_suffix(".bundle")
    shared = tuned(model, "share", full.budget, place, out=bundle, seed=seed)
    own = plain_store(model, trials_per_task, seed, folder).with_suffix(".bundle")
    latency = in_turn({"off": own, "share": bundle})
    return {
        "model": model,
        "seed": seed,
        "tasks": full.budget // trials_per_task,
        "budget": full.budget,
        "latency_s": latency,
        "performance": latency["off"] / latency["share"],
        "kernels_performance": full.kernels_s / shared.kernels_s,
        "time_share": shared.tuning_s / full.tuning_s,
        "runs": {"off": full.to_json(), "share": shared.to_json()},
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The results as a table in Markdown, with means and the goals."""
    lines = [
        "| model | tasks | trials, all / shared | time, s | share of time | performance | sum of kernels |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    for row in rows:
        both = [row["runs"][reuse] for reuse in ("off", "share")]
        spent = " / ".join(str(run["trials"]) for run in both)
        took = " / ".join(f"{run['tuning_s']:.0f}" for run in both)
        gained = f"{row['time_share']:.0%} | {row['performance']:.1%} | {row['kernels_performance']:.1%}"
        lines.append(f"| {row['model']} | {row['tasks']} | {spent} | {took} | {gained} |")
    share = mean(row["time_share"] for row in rows)
    performances = [row["performance"] for row in rows]
    kernels = geometric_mean(row["kernels_performance"] for row in rows)
    lines.append(f"| mean | | | | {share:.0%} | {geometric_mean(performances):.1%} | {kernels:.1%} |")
    goal = f"{LEAST:.0%} on average with {MOST_TIME:.0%} of the time, none under {LEAST_OF_ONE:.0%}"
    met = geometric_mean(performances) >= LEAST and share <= MOST_TIME and min(performances) >= LEAST_OF_ONE
    return "\n".join(lines) + f"\n\nGoal: {goal}. {'Met.' if met else 'Missed.'}"


def run_all(options: argparse.Namespace, folder: Path) -> None:
    tasks = {model: count_tasks(model, folder) for model in options.models}
    full = options.trials_per_task * sum(tasks.values())
    print(told_cost(full * 1.25, 2 * len(tasks), more_minutes=0.5 * len(tasks)), flush=True)
    rows = rows_of(options.out)
    for model in options.models:
        rows[model] = compare(model, options.trials_per_task, options.seed, folder)
        keep(options.out, rows)
        print(table([rows[model]]).splitlines()[2], flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS)
    parser.add_argument("--trials-per-task", type=int, default=48)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, help="keep plain runs here, and use those that are here")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        with tempfile.TemporaryDirectory(prefix="tuneloom-sharing-") as name:
            folder = options.kept or Path(name)
            folder.mkdir(parents=True, exist_ok=True)
            run_all(options, folder)
    print(table(list(rows_of(options.out).values())))


if __name__ == "__main__":
    main()
