"""Our search against Kernel Tuner's strategies on recorded and invented spaces.

Both see the same spaces and the same number of evaluations; failures count. Results
are kept line by line, so that an interrupted run goes on where it was:

    python benchmarks/kernel_replay.py --data RECORDINGS --out benchmarks/results/kernel_replay.jsonl
    python benchmarks/kernel_replay.py --out benchmarks/results/kernel_replay.jsonl --report

The ceiling is the same search with perfect knowledge of validity.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from pathlib import Path

from tuneloom.tuners.replay import files
from tuneloom.tuners.replay.opponent import STRATEGIES, KernelTunerSimulation
from tuneloom.tuners.replay.recording import Recording
from tuneloom.tuners.replay.study import Summary, perfect_knowledge, replayed, summarised
from tuneloom.tuners.replay.synthetic import Recipe, invented

Run = list[float | None]
OURS, CEILING = "tuneloom", "tuneloom, validity known"
INVENTED = [
    (seed, share) for seed, share in zip(range(100, 106), (0.0, 0.3, 0.5, 0.7, 0.8, 0.9), strict=True)
]


def recordings(folder: Path | None, with_invented: bool) -> Iterator[Recording]:
    """Everything to judge on: the files, the stress form of those that are not whole grids, inventions."""
    for path in sorted(folder.glob("*.csv.gz")) if folder else []:
        recording = files.read(path)
        yield recording
        if recording.name.startswith("gemm"):
            yield recording.stressed()
    if with_invented:
        yield from (invented(seed, Recipe(invalid_share=share, limits=3)) for seed, share in INVENTED)


def searches(recording: Recording, arguments: argparse.Namespace) -> dict[str, Callable[[int], Run]]:
    """A function from seed to run, by the name of the search."""
    made: dict[str, Callable[[int], Run]] = {}
    trials = arguments.trials
    if not arguments.theirs:
        short = arguments.until_close
        made[OURS] = lambda seed: replayed(recording, "guided", seed, trials, until_close=short)
        if recording.invalid_share:
            known = perfect_knowledge(recording)
            made[CEILING] = lambda seed: replayed(
                recording, "guided", seed, trials, knowledge=known, until_close=short
            )
    if arguments.strategies:
        opponent = KernelTunerSimulation(recording)
        made |= {name: partial(_opposed, opponent, name, trials) for name in arguments.strategies}
    return made


def _opposed(opponent: KernelTunerSimulation, strategy: str, trials: int, seed: int) -> Run:
    return opponent.run(strategy, seed, trials)


def measure(arguments: argparse.Namespace) -> None:
    """Run what the output file does not hold yet."""
    known = {(line["recording"], line["search"], line["seed"]) for line in _lines(arguments.out)}
    for recording in recordings(arguments.data, arguments.invented):
        if arguments.only and not any(part in recording.name for part in arguments.only):
            continue
        made = searches(recording, arguments)
        for name, run in made.items():
            _measure_one(arguments, recording, name, run, known)


def _measure_one(
    arguments: argparse.Namespace,
    recording: Recording,
    name: str,
    run: Callable[[int], Run],
    known: set[tuple[str, str, int]],
) -> None:
    began = time.perf_counter()
    for seed in range(arguments.seeds):
        if (recording.name, name, seed) in known:
            continue
        if time.perf_counter() - began > arguments.patience:
            print(
                f"{recording.name} {name}: stopped at seed {seed}, {arguments.patience} s are over",
                flush=True,
            )
            return
        line = {"recording": recording.name, "search": name, "seed": seed, "best_ms": recording.best_ms}
        with arguments.out.open("a") as out:
            out.write(json.dumps(line | {"times": _rounded(run(seed))}) + "\n")
    print(f"{recording.name} {name}: {time.perf_counter() - began:.0f} s", flush=True)


def _rounded(run: Run) -> Run:
    return [None if t is None else float(f"{t:.7g}") for t in run]


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def report(path: Path) -> None:
    """Print a table for each recording."""
    runs: dict[str, dict[str, list[Run]]] = defaultdict(lambda: defaultdict(list))
    best: dict[str, float] = {}
    for line in _lines(path):
        runs[str(line["recording"])][str(line["search"])].append(line["times"])  # type: ignore[arg-type]
        best[str(line["recording"])] = float(line["best_ms"])  # type: ignore[arg-type]
    for name, by_search in runs.items():
        known = _Optimum(name, best[name])
        rows = [summarised(known, search, listed) for search, listed in by_search.items()]  # type: ignore[arg-type]
        _table(name, sorted(rows, key=lambda row: (row.to_close, row.best[200])))


class _Optimum:
    """What a summary needs of a recording."""

    def __init__(self, name: str, best_ms: float) -> None:
        self.name, self.best_ms = name, best_ms


def _table(name: str, rows: list[Summary]) -> None:
    print(f"\n### {name}\n")
    print("| search | runs | to 5 % | arrived | best at 25 | 50 | 100 | 200 | invalid | invalid until 5 % |")
    print("| --- " * 10 + "|")
    for row in rows:
        close = "> budget" if row.to_close == inf else f"{row.to_close:g}"
        bests = " | ".join(f"{value:.3f}" for value in row.best.values())
        shares = f"{row.invalid_share:.1%} | {row.invalid_until_close:.1%}"
        print(f"| {row.search} | {row.runs} | {close} | {row.arrived:.0%} | {bests} | {shares} |")


def main() -> None:
    """Measure what is missing, then report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of recordings (*.csv.gz)")
    parser.add_argument("--invented", action="store_true", help="judge on invented spaces too")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=80)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES))
    parser.add_argument("--only", nargs="*", help="parts of the names of the recordings to run")
    parser.add_argument("--patience", type=float, default=inf, help="seconds for one search on one recording")
    parser.add_argument("--until-close", action="store_true", help="end our runs within 5 %% of the optimum")
    parser.add_argument("--theirs", action="store_true", help="run only the opponent")
    parser.add_argument("--report", action="store_true", help="only print what was measured")
    arguments = parser.parse_args()
    if not arguments.report:
        measure(arguments)
    report(arguments.out)


if __name__ == "__main__":
    main()
