"""One version of the kernel search relative to another, by what `kernel_replay.py` measured of both.

    git show COMMIT:benchmarks/results/kernel_replay.jsonl > before.jsonl
    python benchmarks/kernel_compare.py before.jsonl benchmarks/results/kernel_replay.jsonl

Only runs of our search with the same space and seed in both files count. Runs that missed the
goal count as 1.5 times the budget of 200.
"""

import argparse
from collections import defaultdict
from math import exp, log, sqrt
from pathlib import Path
from statistics import mean, median, stdev

from kernel_runs import OURS, kept

MISSED = 300
Runs = dict[tuple[str, int], int]


def runs(path: Path) -> Runs:
    """Evaluations until within 5 %, by space and seed."""
    ours = (line for line in kept(path) if line["search"] == OURS)
    return {(line["recording"], line["seed"]): line["close"] or MISSED for line in ours}


def shared(before: Runs, after: Runs) -> dict[str, list[tuple[int, int]]]:
    """Pairs of runs with the same seed, space by space."""
    pairs = defaultdict(list)
    for space, seed in sorted(before.keys() & after.keys()):
        pairs[space].append((before[space, seed], after[space, seed]))
    return pairs


def summary(pairs: dict[str, list[tuple[int, int]]]) -> str:
    """The geometric mean over spaces of the ratios, with its standard error between spaces."""
    logs = [mean(log(new / old) for old, new in listed) for listed in pairs.values()]
    error = stdev(logs) / sqrt(len(logs)) if len(logs) > 1 else float("nan")
    count = sum(map(len, pairs.values()))
    return f"{exp(mean(logs)):.3f} ({error:.3f} standard error), {count} pairs on {len(pairs)} spaces"


def main() -> None:
    """Print a line a space, then the mean."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    arguments = parser.parse_args()
    pairs = shared(runs(arguments.before), runs(arguments.after))
    if not pairs:
        parser.error("the two files have no run of our search with the same space and seed")
    for space, listed in pairs.items():
        old, new = (median(column) for column in zip(*listed, strict=True))
        print(f"{space}: {old:g} before, {new:g} after, {len(listed)} pairs")
    print(summary(pairs))


if __name__ == "__main__":
    main()
