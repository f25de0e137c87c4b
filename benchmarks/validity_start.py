"""What knowing about failures is worth on spaces that mostly fail: start and search.

    python benchmarks/validity_start.py --data RECORDINGS

Three settings of one search are compared: the validity-driven start; a random first
batch (`random`), after which the same models choose; and a random first batch without
any model of validity afterwards (`blind`), where a failure counts as the slowest time
seen, which is how tuners work that know nothing of validity. Spaces with more than half
of their points invalid count.
"""

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
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
RESULTS = Path(__file__).parent / "results" / "kernel_validity_start.json"
INVENTED = [(seed, share) for seed in range(200, 204) for share in (0.7, 0.9)]


def recordings(folder: Path | None) -> Iterator[Recording]:
    """Spaces with more than half of their points invalid."""
    made = (invented(seed, Recipe(invalid_share=share, limits=4)) for seed, share in INVENTED)
    yield from (recording for recording in made if recording.invalid_share > 0.5)
    for path in sorted(folder.glob("*.csv.gz")) if folder else []:
        recording = files.read(path)
        stressed = recording.stressed()
        yield from (r for r in (recording, stressed) if r.invalid_share > 0.5 and r.size < 1_000_000)


def _no_opinion(points: Points) -> Vector:
    return np.ones(len(points))


def blind(recording: Recording, seed: int, trials: int) -> Run:
    """A random start, then the same model of time, to which a failure is the slowest time seen."""
    search = GuidedSearch(recording.space, seed, Start.RANDOM, _no_opinion)
    run: Run = []
    while len(run) < trials and arrival(run[-1:], recording.best_ms) == inf:
        points = search.propose(1)
        if not points:
            break
        run.append(recording.at(points[0]).time_ms)
        slowest = max((time for time in run if time is not None), default=None)
        time = slowest if run[-1] is None else run[-1]
        search.learn(points[0], None if time is None else time / 1e3)
    return run


def compared(recording: Recording, seeds: int, trials: int) -> dict[str, Summary]:
    """The settings on one recording."""
    ours = partial(replayed, recording, "guided", evaluations=trials, until_close=True)
    settings: dict[str, Callable[[int], Run]] = {
        "validity": lambda seed: ours(seed=seed, start=Start.VALIDITY),
        "random": lambda seed: ours(seed=seed, start=Start.RANDOM),
        "blind": lambda seed: blind(recording, seed, trials),
    }
    return {
        name: summarised(recording, name, [run(seed) for seed in range(seeds)])
        for name, run in settings.items()
    }


def ratios(kept: Sequence[dict[str, object]], other: str, place: int, most: float) -> list[float]:
    """Ours to another setting's, space by space; what never arrived counts as the budget."""
    figures = [(row["validity"][place], row[other][place]) for row in kept]  # type: ignore[index]
    return [min(ours, most) / min(theirs, most) for ours, theirs in figures]


def main() -> None:
    """Compare, print and keep."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seeds", type=int, default=80)
    parser.add_argument("--trials", type=int, default=200)
    arguments = parser.parse_args()
    kept: list[dict[str, object]] = []
    for recording in recordings(arguments.data):
        found = compared(recording, arguments.seeds, arguments.trials)
        text = ", ".join(f"{n} {s.to_close:g} (quartiles {s.spread:g} apart)" for n, s in found.items())
        print(f"{recording.name} ({recording.invalid_share:.0%} invalid): {text}", flush=True)
        figures = {n: [_kept(s.to_close), _kept(s.spread), s.invalid_share] for n, s in found.items()}
        kept.append({"on": recording.name, "seeds": arguments.seeds, "invalid": recording.invalid_share})
        kept[-1] |= figures
        arguments.out.write_text(json.dumps(kept, indent=1) + "\n")
    for other in ("random", "blind"):
        listed = ratios(kept, other, 0, arguments.trials)
        print(f"evaluations of the validity start relative to {other}: median {median(listed):.3f}")


def _kept(value: float) -> float:
    return 1e9 if value == inf else value


if __name__ == "__main__":
    main()
