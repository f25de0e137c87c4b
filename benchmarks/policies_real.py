"""Three networks tuned as jobs of one run with real TVM, under each policy, on this machine.

    python benchmarks/policies_real.py [--models M …] [--trials 300] [--seeds 3] [--out FILE]
    python benchmarks/policies_real.py --table          (draw the table again, tune nothing)

Every run has a process and a store of its own, the same seeds and trials, and reuses nothing.
Policies take turns within each seed, and who begins changes from seed to seed, so that a
machine that warms up or slows down treats all alike. The canary is a fixed kernel timed on
the device between batches; its quiet time is the median under `sequential`, which never
runs two stages at once. Nothing else should run on the machine.
"""

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from tuneloom.app.superb_grid import Combination
from tuneloom.app.superb_running import RunResult, run_combination
from tuneloom.scheduling import POLICIES

OUT = Path(__file__).parent / "results" / "policies_real.json"
MODELS = ("zoo:squeezenet", "zoo:mobilenet_v2", "zoo:resnet18")
QUIET = "sequential"


def combinations(
    models: Sequence[str], policies: Sequence[str], trials: int, seeds: int
) -> list[Combination]:
    """All runs in the order in which they are made."""
    found = []
    for seed in range(seeds):
        turn = seed % len(policies)
        for policy in (*policies[turn:], *policies[:turn]):
            parameters = {"models": list(models), "policy": policy, "trials": trials, "seed": seed}
            found.append(Combination({**parameters, "reuse": "off"}))
    return found


def measure(planned: Sequence[Combination], out: Path) -> list[RunResult]:
    """Make all runs; what is done is written after each."""
    results: list[RunResult] = []
    with tempfile.TemporaryDirectory(prefix="policies-real-") as folder:
        for number, combination in enumerate(planned, 1):
            result = run_combination(combination, Path(folder), Path.cwd())
            results.append(result)
            what = f"{combination.parameters['policy']}, seed {combination.parameters['seed']}"
            print(f"[{number}/{len(planned)}] {what}: {result.status} {result.message}", flush=True)
            out.parent.mkdir(parents=True, exist_ok=True)
            out.write_text(json.dumps([each.to_json() for each in results], indent=1) + "\n")
    return results


def table(results: Sequence[RunResult]) -> str:
    """One row for each policy, means over seeds; runs that did not finish are counted, not averaged."""
    done: dict[str, list[dict[str, Any]]] = {}
    unfinished: dict[str, int] = {}
    for result in results:
        policy = str(result.combination.parameters["policy"])
        done.setdefault(policy, [])
        if result.finished:
            done[policy].append(result.figures)
        else:
            unfinished[policy] = unfinished.get(policy, 0) + 1
    quiet_s = quiet_canary_s(done)
    rows = [policy_row(policy, figures, done, quiet_s) for policy, figures in done.items() if figures]
    text = markdown(rows) if rows else "no run finished"
    return text + "".join(
        f"\n\n{count} runs under {name} did not finish" for name, count in unfinished.items()
    )


def quiet_canary_s(done: dict[str, list[dict[str, Any]]]) -> float | None:
    songs = [s for figures in done.get(QUIET, ()) for s in figures["canary_s"]]
    return median(songs) if songs else None


def policy_row(
    policy: str,
    runs: list[dict[str, Any]],
    done: dict[str, list[dict[str, Any]]],
    quiet_s: float | None,
) -> dict[str, str]:
    makespan_s = mean(run["tuning_s"] for run in runs)
    alone = [run["tuning_s"] for run in done.get(QUIET, ())]
    row = {
        "policy": policy,
        "runs": str(len(runs)),
        "makespan": f"{makespan_s:.1f} s",
        f"against {QUIET}": f"{makespan_s / mean(alone):.3f}" if alone else "–",
    }
    for resource in runs[0]["busy"]:
        row[f"{resource} busy"] = f"{mean(run['busy'][resource] for run in runs):.1%}"
    for model in runs[0]["latencies_after_s"]:
        row[model] = latency(model, runs, done.get(QUIET, []))
    row["canary, median"] = distortion([s for run in runs for s in run["canary_s"]], 0.5, quiet_s)
    row["canary, 90 %"] = distortion([s for run in runs for s in run["canary_s"]], 0.9, quiet_s)
    return row


def latency(model: str, runs: list[dict[str, Any]], alone: list[dict[str, Any]]) -> str:
    """A model's latency after tuning, and how it compares with that under the quiet policy."""
    own = mean(run["latencies_after_s"][model] for run in runs)
    quiet = [run["latencies_after_s"][model] for run in alone]
    against = f" ({own / mean(quiet):.3f}×)" if quiet else ""
    return f"{own * 1e3:.2f} ms{against}"


def distortion(songs: list[float], share: float, quiet_s: float | None) -> str:
    """By how much the canary is slower than when it is quiet."""
    if not songs or quiet_s is None:
        return "–"
    place = share * (len(songs) - 1)
    low, rest = int(place), place % 1
    ordered = sorted(songs)
    at = ordered[low] * (1 - rest) + ordered[min(low + 1, len(songs) - 1)] * rest
    return f"{at / quiet_s - 1:+.1%}"


def markdown(rows: Sequence[dict[str, str]]) -> str:
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    return "\n".join(lines + ["| " + " | ".join(row[name] for name in names) + " |" for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--trials", type=int, default=300, help="for each model")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true", help="draw the table of earlier results")
    options = parser.parse_args()
    if options.table:
        results = [RunResult.from_json(each) for each in json.loads(options.out.read_text())]
    else:
        planned = combinations(options.models, options.policies, options.trials, options.seeds)
        results = measure(planned, options.out)
    print(table(results))


if __name__ == "__main__":
    main()
