"""The validity-driven start against a random start of the same search, on spaces that mostly fail.

    python benchmarks/validity_start.py --data RECORDINGS --out benchmarks/results/kernel_validity_start.json

Three settings of one search are compared: the validity-driven start; a random first
batch (`random`), after which the same models choose; and a random first batch of 50
without any model of validity afterwards (`blind`), which is how tuners work that take
failures for slow points. Spaces with more than half of their points invalid count.
"""

import argparse
import json
from collections.abc import Iterator
from math import inf
from pathlib import Path
from statistics import median

import numpy as np

from tuneloom.tuners.kernel.factors import Points
from tuneloom.tuners.kernel.guided import GuidedSearch, Start, Vector
from tuneloom.tuners.replay import files
from tuneloom.tuners.replay.recording import Recording
from tuneloom.tuners.replay.study import Summary, arrival, replayed, summarised
from tuneloom.tuners.replay.synthetic import Recipe, invented

Run = list[float | None]
FIRST_BATCH = 50
INVENTED = [(seed, share) for seed in range(200, 204) for share in (0.7, 0.9)]


def recordings(folder: Path | None) -> Iterator[Recording]:
    """Spaces with more than half of their points invalid."""
    for path in sorted(folder.glob("*.csv.gz")) if folder else []:
        recording = files.read(path)
        stressed = recording.stressed()
        yield from (r for r in (recording, stressed) if r.invalid_share > 0.5 and r.size < 1_000_000)
    made = (invented(seed, Recipe(invalid_share=share, limits=4)) for seed, share in INVENTED)
    yield from (recording for recording in made if recording.invalid_share > 0.5)


def _no_opinion(points: Points) -> Vector:
    return np.ones(len(points))


def blind(recording: Recording, seed: int, trials: int) -> Run:
    """A random first batch, then the same model of time without one of validity."""
    rng = np.random.default_rng([seed, 61])
    search = GuidedSearch(recording.space, seed, Start.RANDOM, _no_opinion)
    first = dict.fromkeys(tuple(int(i) for i in p) for p in recording.space.sample(FIRST_BATCH, rng))
    run: Run = []
    for point in [*first]:
        run.append(_fate(recording, search, point))
    while len(run) < trials and arrival(run, recording.best_ms) == inf:
        points = search.propose(1)
        if not points:
            break
        run.append(_fate(recording, search, points[0]))
    return run[: int(min(arrival(run, recording.best_ms), len(run)))]


def _fate(recording: Recording, search: GuidedSearch, point: tuple[int, ...]) -> float | None:
    entry = recording.at(point)
    search.learn(point, None if entry.time_ms is None else entry.time_ms / 1e3)
    return entry.time_ms


def compared(recording: Recording, seeds: int, trials: int, with_blind: bool) -> dict[str, Summary]:
    """The settings on one recording."""
    starts = {"validity": Start.VALIDITY, "random": Start.RANDOM}
    found = {
        name: summarised(
            recording,
            name,
            [replayed(recording, "guided", s, trials, start, until_close=True) for s in range(seeds)],
        )
        for name, start in starts.items()
    }
    if not with_blind:
        return found
    runs = [blind(recording, seed, trials) for seed in range(seeds)]
    return found | {"blind": summarised(recording, "blind", runs)}


def main() -> None:
    """Compare, print and keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seeds", type=int, default=80)
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--without-blind", action="store_true", help="leave out the search without a model")
    arguments = parser.parse_args()
    others = ["random"] if arguments.without_blind else ["random", "blind"]
    ratios: dict[str, list[float]] = {name: [] for name in others}
    kept = []
    for recording in recordings(arguments.data):
        found = compared(recording, arguments.seeds, arguments.trials, not arguments.without_blind)
        ours = found["validity"]
        text = ", ".join(f"{n} {s.to_close:g} (quartiles {s.spread:g} apart)" for n, s in found.items())
        print(f"{recording.name} ({recording.invalid_share:.0%} invalid): {text}", flush=True)
        for name, listed in ratios.items():
            listed.append(ours.to_close / min(found[name].to_close, arguments.trials))
        kept.append(
            {n: [s.to_close, s.spread, s.invalid_share] for n, s in found.items()} | {"on": recording.name}
        )
    for name, listed in ratios.items():
        print(f"evaluations of the validity start relative to {name}: median {median(listed):.3f}")
    if arguments.out:
        arguments.out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
