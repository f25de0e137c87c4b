"""What other models' schedules are worth to a new model, against plain tuning.

    python benchmarks/transfer.py [--models …] [--trials-per-task 48] [--kept FOLDER]
    python benchmarks/transfer.py --table          redraw the table from the recorded results

Every model is tuned plainly once (`--reuse off`), and its records are exported as a bank.
Then each model gets the banks of all others and runs `--reuse transfer-only` to its end. The
plain run is a course in time: the model as it was after 1, 2, … times the seconds that the
transfer took is compiled from the trials made by then, the same is done with the transfer,
and both run in turn in one process. So "equal time" and "how long plain needs to match" are
judged on whole models, side by side, and not by sums of kernels timed at different hours.
Times count from the end of the import on both sides; planning counts.
"""

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from transfer_runs import Run, count_tasks, keep, plain, plain_store, rows_of, told_cost, tuned
from transfer_states import Compared, first_match, schedules_at
from tuneloom.app.bank.files import export_bank, import_bank
from tuneloom.tuners.tvm.zoo.listing import zoo_names

MODELS = ("squeezenet", "mobilenet_v2", "resnet18", "resnet50")
RESULTS = Path(__file__).parent / "results" / "transfer.json"
ONLY = "transfer-only"
GOAL = 6.5


def transferred(model: str, others: Sequence[str], options: argparse.Namespace, folder: Path) -> Run:
    """Tune a model by nothing but what the others' banks give."""
    bank = transfer_store(model, folder)
    bank.unlink(missing_ok=True)
    for other in others:
        place = plain_store(other, options.trials_per_task, options.seed, folder)
        file = place.with_suffix(".jsonl")
        if not file.exists():
            export_bank(file, str(place))
        import_bank(file, str(bank))
    trials = options.trials_per_task * count_tasks(model, folder)
    return tuned(model, ONLY, trials, bank, seed=options.seed)


def transfer_store(model: str, folder: Path) -> Path:
    return folder / f"{ONLY}-{model}.db"


def compare(model: str, others: Sequence[str], options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Transfer from the others' banks against the course of the plain run."""
    long, given = (
        plain(model, options.trials_per_task, options.seed, folder),
        transferred(model, others, options, folder),
    )
    own = plain_store(model, options.trials_per_task, options.seed, folder)
    compared = Compared(model)
    ours = compared.compiled(schedules_at(transfer_store(model, folder), given, given.tuning_s))
    found: dict[float, dict[str, float]] = {}

    def ratio_at(times: float) -> float:
        """The plain run's latency after so many times the transfer's time, against the transfer's."""
        if times not in found:
            theirs = compared.compiled(schedules_at(own, long, times * given.tuning_s))
            plain_s, transfer_s, ratio = compared.in_turn(theirs, ours)
            found[times] = {"plain_s": plain_s, "transfer_s": transfer_s, "ratio": ratio}
        return found[times]["ratio"]

    longest = long.tuning_s / given.tuning_s
    needs, matched = first_match(ratio_at, longest)
    if longest >= GOAL:
        ratio_at(GOAL)
    return {
        "model": model,
        "bank": list(others),
        "transfer_s": given.tuning_s,
        "plain_needs": needs,
        "matched": matched,
        "states": [{"times": times, **state} for times, state in sorted(found.items())],
        "runs": {ONLY: given.to_json(), "plain": long.to_json()},
    }


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The results as a table in Markdown, with means and the goals."""
    lines = [
        "| model | trials | transfer took | speed-up over untuned: transfer / plain at equal time "
        f"| plain is slower at equal time by | plain needs | plain is faster after {GOAL} times as long by |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]
    lines += map(_line, rows)
    equal, needs = [_equal(row)["ratio"] for row in rows], [row["plain_needs"] for row in rows]
    lines.append(f"| mean | | | | {geometric_mean(equal):.2f} × | {geometric_mean(needs):.1f} × | |")
    met = min(equal) >= 1.0 and geometric_mean(needs) >= GOAL
    goal = f"Goal: never slower at equal time, plain needs {GOAL} times as long on average."
    return "\n".join(lines) + f"\n\n{goal} {'Met.' if met else 'Missed.'}"


def _equal(row: Mapping[str, Any]) -> Mapping[str, float]:
    """Both models at the time the transfer took."""
    state: Mapping[str, float] = next(state for state in row["states"] if state["times"] == 1.0)
    return state


def _gained(row: Mapping[str, Any]) -> str:
    """What the rest of the time makes of the plain run, each time beside the same transfer."""
    later = {state["times"]: state for state in row["states"]}.get(GOAL)
    return "–" if later is None else f"{_equal(row)['ratio'] / later['ratio']:.2f} ×"


def _line(row: Mapping[str, Any]) -> str:
    given, state = row["runs"][ONLY], _equal(row)
    ups = [given["before_s"] / state[key] for key in ("transfer_s", "plain_s")]
    more = "" if row["matched"] else "more than "
    return (
        f"| {row['model']} | {given['trials']} | {row['transfer_s']:.0f} s | {ups[0]:.1f} / {ups[1]:.1f} "
        f"| {state['ratio']:.2f} × | {more}{row['plain_needs']:.1f} × | {_gained(row)} |"
    )


def run_all(options: argparse.Namespace, folder: Path) -> None:
    tasks = {model: count_tasks(model, folder) for model in options.models}
    per_task, seed = options.trials_per_task, options.seed
    missing = [m for m in tasks if not plain_store(m, per_task, seed, folder).with_suffix(".json").exists()]
    trials = per_task * sum(tasks[model] for model in missing) + 5 * sum(tasks.values())
    print(told_cost(trials, len(missing) + len(tasks), more_minutes=2.0 * len(tasks)), flush=True)
    for model in missing:
        plain(model, per_task, seed, folder)
    rows = rows_of(options.out)
    for model in options.models:
        others = [other for other in options.models if other != model]
        rows[model] = compare(model, others, options, folder)
        keep(options.out, rows)
        print(_line(rows[model]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", nargs="+", default=MODELS, choices=zoo_names())
    parser.add_argument("--trials-per-task", type=int, default=48)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kept", type=Path, help="keep plain runs here, and use those that are here")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        with tempfile.TemporaryDirectory(prefix="tuneloom-transfer-") as name:
            folder = options.kept or Path(name)
            folder.mkdir(parents=True, exist_ok=True)
            run_all(options, folder)
    print(table(list(rows_of(options.out).values())))


if __name__ == "__main__":
    main()
