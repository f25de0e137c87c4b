"""Three networks tuned as jobs of one run with real TVM, under each policy, on this machine.

    python benchmarks/policies_real.py [--models M …] [--trials 96] [--rounds 3] [--minutes 25]
    python benchmarks/policies_real.py --table          (draw the table again, tune nothing)

Every run has a process and a store of its own, reuses nothing, and has the trials and, within a
round, the seed of all others. In each round every policy has its turn, and the order changes
from round to round, so that a machine that warms up or slows down treats all alike. Another
round is begun only while it should end in time; the first one is made whatever it takes.

All comparisons are with `sequential`, which never runs two stages at once, within the same
round. The canary is a fixed kernel timed on the device between batches: by how much it is
slower than under `sequential` is how much a policy distorts what it measures. Final latencies
are those of the bundles of a round, timed in turn when the round is over: beside each ratio stands
the range over rounds, and below the table by how much those of `sequential` itself differ from
round to round. Nothing else should run on the machine.
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from statistics import mean, median
from typing import Any

import from_nothing  # noqa: F401
from transfer_runs import in_turn
from tuneloom.app.grids.grid import Combination
from tuneloom.app.grids.running import RunResult, run_combination
from tuneloom.scheduling import POLICIES

OUT = Path(__file__).parent / "results" / "policies_real.json"
MODELS = ("zoo:squeezenet", "zoo:mobilenet_v2", "zoo:resnet18")
QUIET = "sequential"

Figures = dict[str, Any]
Runs = dict[int, Figures]
"""The figures of one policy, by seed."""
Done = dict[str, Runs]


def planned_round(
    number: int, models: Sequence[str], policies: Sequence[str], trials: int
) -> list[Combination]:
    """One run under each policy; the order turns by one each round and runs backwards in every other."""
    turn = number % len(policies)
    order = [*policies[turn:], *policies[:turn]][:: -1 if number % 2 else 1]
    shared = {"models": list(models), "trials": trials, "seed": number, "reuse": "off"}
    return [Combination({**shared, "policy": policy}) for policy in order]


def measure(options: argparse.Namespace) -> list[RunResult]:
    """Make all rounds that there is time for; what is done is written after each run."""
    results: list[RunResult] = []
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="policies-real-") as folder:
        for number in range(options.rounds):
            spent_s = time.monotonic() - began_s
            if number and spent_s * (number + 1) / number > options.minutes * 60:
                print(f"no time for another round after {spent_s / 60:.1f} minutes", flush=True)
                break
            done = []
            for combination in planned_round(number, options.models, options.policies, options.trials):
                done.append(carried_out(combination, Path(folder)))
                tell(done[-1])
                write(results + done, options.out)
            add_latencies(done, Path(folder))
            results += done
            write(results, options.out)
    return results


def bundles(combination: Combination, folder: Path) -> Path:
    """Where the models of a run go."""
    return folder / "bundles" / f"{combination.parameters['policy']}-{combination.parameters['seed']}"


def carried_out(combination: Combination, folder: Path) -> RunResult:
    """One run whose models are kept; where they are kept is nobody's business."""
    out = Combination({**combination.parameters, "out": str(bundles(combination, folder))})
    return replace(run_combination(out, folder, Path.cwd()), combination=combination)


def add_latencies(results: Sequence[RunResult], folder: Path) -> None:
    """Time what all policies of a round made of a model in turn."""
    finished = [result for result in results if result.finished]
    for model in sorted({name for result in finished for name in result.figures["latencies_after_s"]}):
        made = {str(n): bundles(r.combination, folder) / model for n, r in enumerate(finished)}
        for number, latency_s in in_turn(made).items():
            finished[int(number)].figures.setdefault("in_turn_s", {})[model] = latency_s


def write(results: Sequence[RunResult], out: Path) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps([each.to_json() for each in results], indent=1) + "\n")


def tell(result: RunResult) -> None:
    parameters = result.combination.parameters
    what = f"{parameters['policy']}, round {parameters['seed']}"
    print(f"{what}: {result.status} after {result.wall_s:.0f} s {result.message}", flush=True)


def table(results: Sequence[RunResult]) -> str:
    """One row for each policy; runs that did not finish are counted, not averaged."""
    done: Done = {}
    unfinished: Counter[str] = Counter()
    for result in results:
        policy, seed = (
            str(result.combination.parameters["policy"]),
            int(result.combination.parameters["seed"]),
        )
        if result.finished:
            done.setdefault(policy, {})[seed] = result.figures
        else:
            unfinished[policy] += 1
    rows = [policy_row(policy, done) for policy in POLICIES if policy in done]
    lines = [markdown(rows) if rows else "no run finished"]
    noise = own_noise(done.get(QUIET, {}))
    if noise is not None:
        lines.append(
            f"Final latencies of one model under {QUIET} differ by up to {noise:.1%} between rounds."
        )
    lines += [f"{count} runs under {name} did not finish." for name, count in unfinished.items()]
    return "\n\n".join(lines)


def policy_row(policy: str, done: Done) -> dict[str, str]:
    runs = done[policy]
    quiet = done.get(QUIET, {})
    pairs = [(figures, quiet[seed]) for seed, figures in runs.items() if seed in quiet]
    busy = {name: mean(run["busy"][name] for run in runs.values()) for name in resources(runs)}
    busier = max(busy, key=lambda name: busy[name])
    row = {
        "policy": policy,
        "rounds": str(len(runs)),
        "trials": "/".join(sorted({str(run["trials"]) for run in runs.values()})),
        "makespan": f"{mean(run['tuning_s'] for run in runs.values()):.1f} s",
        f"against {QUIET}": told([run["tuning_s"] / alone["tuning_s"] for run, alone in pairs]),
        "busier resource": f"{busier} {busy[busier]:.1%}",
    }
    row |= {f"{name} busy": f"{share:.1%}" for name, share in busy.items()}
    row["latency"] = told([latency_ratio(run, alone) for run, alone in pairs])
    row["canary, median"] = told([canary_ratio(run, alone, 0.5) for run, alone in pairs])
    row["canary, 90 %"] = told([canary_ratio(run, alone, 0.9) for run, alone in pairs])
    for model in timed_in_turn(runs.values()):
        row[model] = f"{mean(run['in_turn_s'][model] for run in runs.values()) * 1e3:.2f} ms"
    return row


def resources(runs: Runs) -> list[str]:
    """The resources that somebody used."""
    names = next(iter(runs.values()))["busy"]
    return [name for name in names if any(run["busy"].get(name) for run in runs.values())] or list(names)


def timed_in_turn(runs: Iterable[Figures]) -> list[str]:
    """The models of which all of these runs were timed in turn; none of a round that was interrupted."""
    timed = [set(run.get("in_turn_s", {})) for run in runs]
    return sorted(set.intersection(*timed)) if timed else []


def told(ratios: Sequence[float | None]) -> str:
    """The mean of the ratios of all rounds, and their range where there are several."""
    known = [ratio for ratio in ratios if ratio is not None]
    if not known:
        return "–"
    spread = f" ({min(known):.3f}–{max(known):.3f})" if len(known) > 1 else ""
    return f"{mean(known):.3f}{spread}"


def latency_ratio(run: Figures, alone: Figures) -> float | None:
    """The geometric mean over all models of the latency after tuning against that under the quiet policy."""
    pairs = [(run["in_turn_s"][name], alone["in_turn_s"][name]) for name in timed_in_turn([run, alone])]
    ratios = [own / quiet for own, quiet in pairs if own and quiet]
    return float(prod(ratios) ** (1 / len(ratios))) if ratios else None


def own_noise(runs: Runs) -> float | None:
    """By how much the latency of one model differs between rounds, at the most."""
    spreads = []
    for model in timed_in_turn(runs.values()) if len(runs) > 1 else ():
        times = [run["in_turn_s"][model] for run in runs.values()]
        spreads.append(max(times) / min(times) - 1 if all(times) else 0.0)
    return max(spreads, default=None)


def canary_ratio(run: Figures, alone: Figures, share: float) -> float | None:
    """A quantile of the canary's times against its median when it is quiet."""
    if not run["canary_s"] or not alone["canary_s"]:
        return None
    return float(quantile(run["canary_s"], share) / median(alone["canary_s"]))


def quantile(times: Sequence[float], share: float) -> float:
    place = share * (len(times) - 1)
    low, rest = int(place), place % 1
    ordered = sorted(times)
    return ordered[low] * (1 - rest) + ordered[min(low + 1, len(times) - 1)] * rest


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
    parser.add_argument("--trials", type=int, default=96, help="for each model")
    parser.add_argument("--rounds", type=int, default=3, help="at the most")
    parser.add_argument("--minutes", type=float, default=25.0, help="for all rounds but the first")
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--table", action="store_true", help="draw the table of earlier results")
    options = parser.parse_args()
    if options.table:
        results = [RunResult.from_json(each) for each in json.loads(options.out.read_text())]
    else:
        results = measure(options)
    print(table(results))


if __name__ == "__main__":
    main()
