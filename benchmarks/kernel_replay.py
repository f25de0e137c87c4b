"""Our search against Kernel Tuner's strategies on recorded and invented spaces.

Both see the same spaces and the same number of evaluations; failures count. What each
run came to is kept line by line, so that an interrupted measurement goes on where it was:

    python benchmarks/kernel_replay.py --data RECORDINGS
    python benchmarks/kernel_replay.py --report

The ceiling is the same search with perfect knowledge of validity.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from pathlib import Path

from kernel_runs import CEILING, OURS, Run, keep, kept, measured
from kernel_tables import page
from tuneloom.tuners.replay import files
from tuneloom.tuners.replay.opponent import STRATEGIES, KernelTunerSimulation
from tuneloom.tuners.replay.recording import Recording
from tuneloom.tuners.replay.study import perfect_knowledge, replayed
from tuneloom.tuners.replay.synthetic import Recipe, invented

RESULTS = Path(__file__).parent / "results"
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
    if not arguments.theirs:
        ours = partial(_ours, recording, arguments)
        made[OURS] = ours
        if recording.invalid_share:
            made[CEILING] = partial(ours, knowledge=perfect_knowledge(recording))
    if arguments.strategies:
        opponent = KernelTunerSimulation(recording)
        made |= {name: partial(_opposed, opponent, name, arguments.trials) for name in arguments.strategies}
    return made


def _ours(recording: Recording, arguments: argparse.Namespace, seed: int, knowledge: object = None) -> Run:
    short = arguments.until_close
    return replayed(recording, "guided", seed, arguments.trials, knowledge=knowledge, until_close=short)  # type: ignore[arg-type]


def _opposed(opponent: KernelTunerSimulation, strategy: str, trials: int, seed: int) -> Run:
    return opponent.run(strategy, seed, trials)


def measure(arguments: argparse.Namespace) -> None:
    """Run what the output file does not hold yet."""
    known = {(line["recording"], line["search"], line["seed"]) for line in kept(arguments.out)}
    for recording in recordings(arguments.data, arguments.invented):
        if arguments.only and not any(part in recording.name for part in arguments.only):
            continue
        for name, run in searches(recording, arguments).items():
            _measure_one(arguments, recording, name, run, known)


def _measure_one(
    arguments: argparse.Namespace,
    recording: Recording,
    name: str,
    run: Callable[[int], Run],
    known: set[tuple[str, str, int]],
) -> None:
    began = time.perf_counter()
    seeds = [seed for seed in range(arguments.seeds) if (recording.name, name, seed) not in known]
    for seed in seeds:
        if time.perf_counter() - began > arguments.patience:
            print(f"{recording.name} {name}: stopped at seed {seed}, its time is over", flush=True)
            return
        keep(arguments.out, measured(recording, name, seed, run(seed)))
    print(f"{recording.name} {name}: {time.perf_counter() - began:.0f} s", flush=True)


def main() -> None:
    """Measure what is missing, then write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of recordings (*.csv.gz)")
    parser.add_argument("--invented", action="store_true", help="judge on invented spaces too")
    parser.add_argument("--out", type=Path, default=RESULTS / "kernel_replay.jsonl")
    parser.add_argument("--seeds", type=int, default=80)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES))
    parser.add_argument("--only", nargs="*", help="parts of the names of the recordings to run")
    parser.add_argument("--patience", type=float, default=inf, help="seconds for one search on one recording")
    parser.add_argument("--until-close", action="store_true", help="end our runs within 5 %% of the optimum")
    parser.add_argument("--theirs", action="store_true", help="run only the opponent")
    parser.add_argument("--report", action="store_true", help="only write the page of what was measured")
    arguments = parser.parse_args()
    if not arguments.report:
        measure(arguments)
    arguments.out.with_suffix(".md").write_text(page(kept(arguments.out)))


if __name__ == "__main__":
    main()
