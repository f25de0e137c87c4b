"""Our search against Kernel Tuner's strategies on recorded and invented spaces.

    python benchmarks/kernel_replay.py --data RECORDINGS [--landscapes all] [--workers 2] [--minutes 60]
    python benchmarks/kernel_replay.py --report

Both see the same spaces and the same number of evaluations; failures count. The ceiling
is the same search with perfect knowledge of validity. Beside the files given, those of
benchmarks/recordings are used; `record_triton.py` makes such a file.
"""

import argparse
from collections.abc import Iterator
from itertools import product
from math import inf
from pathlib import Path

from kernel_runs import CEILING, OPTUNA, OURS, STRESS, kept
from kernel_tables import page
from kernel_work import Piece, opened, work
from landscapes import CHARACTERS, SEEDS
from tuneloom.tuners.replay.opponent import STRATEGIES

RESULTS = Path(__file__).parent / "results"
OWN = Path(__file__).parent / "recordings"
RECORDINGS = ("*.csv.gz", "*.json.gz")
_ROUND = 10
HALVES = {"development": SEEDS[::2], "kept": SEEDS[1::2], "all": SEEDS}


def sources(folder: Path | None, half: str | None) -> Iterator[str]:
    """Everything to judge on: files, the stress form of those that are not whole grids, landscapes."""
    given = sorted(path for kind in RECORDINGS for path in folder.glob(kind)) if folder else []
    for path in (*given, *(sorted(OWN.glob("*.csv.gz")) if given else ())):
        yield str(path)
        if path.name.startswith("gemm"):
            yield f"{path}{STRESS}"
    for seed in HALVES[half] if half else ():
        yield from (f"landscape:{character}:{seed}" for character in CHARACTERS)


def searches(source: str, arguments: argparse.Namespace) -> list[str]:
    """The names of what runs on a space."""
    ours = [] if arguments.theirs else [OURS]
    if arguments.ceiling and opened(source).invalid_share:
        ours.append(CEILING)
    return [*ours, *arguments.strategies]


def pieces(arguments: argparse.Namespace) -> Iterator[Piece]:
    """All runs, ten seeds on one space after the other, so that a worker keeps few spaces open."""
    listed = [s for s in sources(arguments.data, arguments.landscapes) if wanted(s, arguments.only)]
    for first in range(0, arguments.seeds, _ROUND):
        seeds = range(first, min(first + _ROUND, arguments.seeds))
        for source, seed in product(listed, seeds):
            for search in searches(source, arguments):
                short = arguments.until_close
                yield Piece(
                    source=source, search=search, seed=seed, trials=arguments.trials, until_close=short
                )


def wanted(source: str, parts: list[str] | None) -> bool:
    """Whether a space is one of those asked for."""
    return not parts or any(part in source for part in parts)


def main() -> None:
    """Measure what is missing, then write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="folder of recordings (*.csv.gz, *.json.gz)")
    parser.add_argument(
        "--landscapes", choices=list(HALVES), help="judge on this half of invented spaces too"
    )
    parser.add_argument("--out", type=Path, default=RESULTS / "kernel_replay.jsonl")
    parser.add_argument("--seeds", type=int, default=80)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--strategies", nargs="*", default=[OPTUNA, *STRATEGIES])
    parser.add_argument("--ceiling", action="store_true", help="also run ours with validity known")
    parser.add_argument("--only", nargs="*", help="parts of the names of the spaces to run")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=inf, help="begin no run afterwards")
    parser.add_argument("--until-close", action="store_true", help="end our runs within 5 %% of the optimum")
    parser.add_argument("--theirs", action="store_true", help="run only the opponent")
    parser.add_argument("--report", action="store_true", help="only write the page of what was measured")
    arguments = parser.parse_args()
    if not arguments.report:
        if next(pieces(arguments), None) is None:
            parser.error("no spaces to run on; give --data a folder of recordings, or --landscapes")
        work(pieces(arguments), arguments.out, arguments.workers, arguments.minutes)
    arguments.out.with_suffix(".md").write_text(page(kept(arguments.out)))


if __name__ == "__main__":
    main()
