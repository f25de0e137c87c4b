"""What knowing about failures is worth on spaces that mostly fail: start and search.

    python benchmarks/validity_start.py --data RECORDINGS [--workers 2] [--minutes 60]
    python benchmarks/validity_start.py --report

Five settings of one search are compared: the validity-driven start; the same where
failures are failures to build, and points are built around first, as long as that pays;
the same with perfect knowledge of what fails, the ceiling; a random first batch, after
which the same models choose; and a random first batch without any model of validity
afterwards (blind), where a failure counts as the slowest time seen, which is how tuners
work that know nothing of validity. Spaces with more than half of their points invalid
count. Runs end once within 5 % of the optimum.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from math import inf
from pathlib import Path
from statistics import geometric_mean, median

from kernel_runs import BLIND, CEILING, OURS, PRESAMPLED, RANDOM_START, STRESS, Line, kept, needed
from kernel_tables import table
from kernel_work import Piece, opened, work

RESULTS = Path(__file__).parent / "results" / "kernel_validity_start.jsonl"
SETTINGS = (OURS, PRESAMPLED, CEILING, RANDOM_START, BLIND)
INVENTED = tuple(f"invented:{seed}:{share}:4" for seed in range(200, 204) for share in (0.7, 0.9))


def sources(folder: Path | None) -> Iterator[str]:
    """Spaces with more than half of their points invalid."""
    paths = [str(path) for path in sorted(folder.glob("*.csv.gz"))] if folder else []
    forms = [form for path in paths for form in (path, f"{path}{STRESS}")]
    for source in (*INVENTED, *forms):
        if opened(source).invalid_share > 0.5 and opened(source).size < 1_000_000:
            yield source


def pieces(arguments: argparse.Namespace) -> Iterator[Piece]:
    """All runs, one seed after the other."""
    listed = list(sources(arguments.data))
    for seed in range(arguments.seeds):
        for source in listed:
            for search in SETTINGS:
                yield Piece(
                    source=source, search=search, seed=seed, trials=arguments.trials, until_close=True
                )


INTRODUCTION = """\
# Validity-driven start

Evaluations until within 5 % on spaces of which more than half fails: our search; the same search after a
random first batch; and after a random first batch without a model of validity (blind). "Presampled" is
our search where failures are failures to build: it has built points around first, as long as that paid;
these builds take no time of the device and stand beside it. "Known" is our search told beforehand what
fails: the ceiling of anything that learns it; its own failures do not count. Medians, budget 200.

Measured by `python benchmarks/validity_start.py --data RECORDINGS`, drawn again with `--report`.
"""


def page(lines: Sequence[Line], trials: int) -> str:
    """A row a space, and the ratios over all of them."""
    spaces: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        spaces[line["recording"]][line["search"]].append(min(needed(line), trials))
    whole = {name: runs for name, runs in spaces.items() if runs[OURS] and runs[RANDOM_START] and runs[BLIND]}
    columns = (
        "space",
        "runs",
        *(f"{name}, quartiles" for name in ("validity", "presampled", "known", "random", "blind")),
    )
    builds = _builds(lines)
    pairs = product((OURS, PRESAMPLED, CEILING), (RANDOM_START, BLIND))
    ratios = "\n".join(_ratio(whole, one, other) for one, other in pairs)
    rows = table(columns, [_row(name, runs) for name, runs in whole.items()]) + builds
    return f"{INTRODUCTION}\n{rows}\n{ratios}\n{_spreads(whole)}"


def _row(name: str, runs: dict[str, list[float]]) -> Sequence[object]:
    cells: list[object] = []
    for setting in SETTINGS:
        if not runs[setting]:
            cells.append("not run")
            continue
        low, high = _quartiles(runs[setting])
        cells.append(f"{median(runs[setting]):g}, {low:g} to {high:g}")
    return name, min(len(runs[s]) for s in SETTINGS if runs[s]), *cells


def _quartiles(values: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(values)
    return ordered[len(ordered) // 4], ordered[3 * len(ordered) // 4]


def _spreads(spaces: dict[str, dict[str, list[float]]]) -> str:
    """On how many spaces seeds differ no more than after a random start, by the distance of quartiles."""
    told = []
    for setting in (OURS, PRESAMPLED):
        pairs = [(runs[setting], runs[RANDOM_START]) for runs in spaces.values() if runs[setting]]
        wide = [tuple(high - low for low, high in map(_quartiles, pair)) for pair in pairs]
        told.append(f"`{setting}` {sum(one <= other for one, other in wide)} of {len(wide)}")
    return f"Spaces on which quartiles are no farther apart than after a random start: {', '.join(told)}.\n"


def _builds(lines: Sequence[Line]) -> str:
    counts = [line["builds"] for line in lines if "builds" in line]
    return f"\nPoints that were only built: {median(counts):g} (median of runs).\n" if counts else ""


def _ratio(spaces: dict[str, dict[str, list[float]]], one: str, other: str) -> str:
    ratios = [median(runs[one]) / median(runs[other]) for runs in spaces.values() if runs[one]]
    if not ratios:
        return ""
    each = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
    return (
        f"`{one}` relative to `{other}`: geometric mean {geometric_mean(ratios):.3f}, "
        f"median {median(ratios):.3f} (space by space {each}); "
        "runs that missed the goal count as the full budget.\n"
    )


def main() -> None:
    """Measure what is missing, then write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of recordings (*.csv.gz)")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--seeds", type=int, default=80)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=inf, help="begin no run afterwards")
    parser.add_argument("--report", action="store_true", help="only write the page of what was measured")
    arguments = parser.parse_args()
    if not arguments.report:
        work(pieces(arguments), arguments.out, arguments.workers, arguments.minutes)
    arguments.out.with_suffix(".md").write_text(page(kept(arguments.out), arguments.trials))


if __name__ == "__main__":
    main()
