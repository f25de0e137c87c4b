"""Our search against Kernel Tuner's strategies on recorded and invented spaces.

    python benchmarks/kernel_replay.py --data RECORDINGS [--invented] [--workers 2] [--minutes 60]
    python benchmarks/kernel_replay.py --report

Both see the same spaces and the same number of evaluations; failures count. The ceiling
is the same search with perfect knowledge of validity. Beside the files given, those of
benchmarks/recordings are used; `record_triton.py` makes such a file.
"""

import argparse
from collections.abc import Iterator
from math import inf
from pathlib import Path

from kernel_runs import CEILING, OURS, kept
from kernel_tables import page
from kernel_work import STRESS, Piece, opened, work
from tuneloom.tuners.replay.opponent import STRATEGIES

RESULTS = Path(__file__).parent / "results"
OWN = Path(__file__).parent / "recordings"
INVENTED = tuple(
    f"invented:{seed}:{share}:3"
    for seed, share in zip(range(100, 106), (0.0, 0.3, 0.5, 0.7, 0.8, 0.9), strict=True)
)


def sources(folder: Path | None, with_invented: bool) -> Iterator[str]:
    """Everything to judge on: the files, the stress form of those that are not whole grids, inventions."""
    given = sorted(folder.glob("*.csv.gz")) if folder else []
    for path in (*given, *sorted(OWN.glob("*.csv.gz"))):
        yield str(path)
        if path.name.startswith("gemm"):
            yield f"{path}{STRESS}"
    if with_invented:
        yield from INVENTED


def searches(source: str, arguments: argparse.Namespace) -> list[str]:
    """The names of what runs on a space."""
    ours = [] if arguments.theirs else [OURS]
    if ours and opened(source).invalid_share:
        ours.append(CEILING)
    return [*ours, *arguments.strategies]


def pieces(arguments: argparse.Namespace) -> Iterator[Piece]:
    """All runs, one seed after the other."""
    listed = [s for s in sources(arguments.data, arguments.invented) if wanted(s, arguments.only)]
    chosen = [(source, search) for source in listed for search in searches(source, arguments)]
    for seed in range(arguments.seeds):
        for source, search in chosen:
            short = arguments.until_close
            yield Piece(source=source, search=search, seed=seed, trials=arguments.trials, until_close=short)


def wanted(source: str, parts: list[str] | None) -> bool:
    """Whether a space is one of those asked for."""
    return not parts or any(part in source for part in parts)


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
    parser.add_argument("--only", nargs="*", help="parts of the names of the spaces to run")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=inf, help="begin no run afterwards")
    parser.add_argument("--until-close", action="store_true", help="end our runs within 5 %% of the optimum")
    parser.add_argument("--theirs", action="store_true", help="run only the opponent")
    parser.add_argument("--report", action="store_true", help="only write the page of what was measured")
    arguments = parser.parse_args()
    if not arguments.report:
        work(pieces(arguments), arguments.out, arguments.workers, arguments.minutes)
    arguments.out.with_suffix(".md").write_text(page(kept(arguments.out)))


if __name__ == "__main__":
    main()
