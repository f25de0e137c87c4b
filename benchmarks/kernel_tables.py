"""The page of a comparison of kernel searches, made of its runs."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import inf
from statistics import median

from kernel_runs import CEILING, OURS, Line, needed
from tuneloom.tuners.replay.study import CHECKPOINTS

INTRODUCTION = """\
# Kernel search on recorded spaces

Evaluations until within 5 % of the optimum; failed evaluations count. "Ceiling" is our search with
perfect knowledge of validity; its own failures do not count. Kernel Tuner is 1.5.0 in simulation mode
with its options as shipped and a search space of its own for every run (it remembers which neighbours it
handed out, so runs that share one profit from each other); budget 200. The files are those of
AutoTuningAssociation/benchmark_hub; matmul_triton_H200 is our own, of the space of
`benchmarks/record_triton.py`. "+stress" makes every point of the grid that was not recorded fail. A
number of runs below 80 means that time was short. "–" stands where some runs made fewer different
evaluations: some strategies repeat themselves.
Whether to start in the middle of a space or spread out was decided on invented spaces with
pnpoly_KT_RTX_3090 in view; 40 % of dedisp's points are close, so one or two draws decide there.

Measured by `python benchmarks/kernel_replay.py --data RECORDINGS`, drawn again with `--report`.
"""
Runs = dict[str, list[Line]]


def page(lines: Iterable[Line]) -> str:
    """A table over all spaces, then one for each."""
    spaces: dict[str, Runs] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        spaces[line["recording"]][line["search"]].append(line)
    parts = [INTRODUCTION, _overview(spaces), *(_details(name, runs) for name, runs in spaces.items())]
    return "\n".join(parts)


def _overview(spaces: dict[str, Runs]) -> str:
    columns = ("space", "fails at random", "ours (runs)", "ceiling", "Kernel Tuner's best (runs)")
    rows = [_compared(name, runs) for name, runs in spaces.items() if OURS in runs]
    shares = ("failed of ours until then", "failed of all of ours", "/ at random")
    return table((*columns, "ours / its best", *shares), rows)


def _compared(name: str, runs: Runs) -> Sequence[object]:
    ours = runs[OURS]
    ceiling = _shown(arrival(runs[CEILING])) if CEILING in runs else "the same"
    theirs = {search: arrival(listed) for search, listed in runs.items() if search not in (OURS, CEILING)}
    best = min(theirs, key=lambda search: theirs[search], default=None)
    against, ratio = "not run", "–"
    if best is not None:
        against = f"{best} {_shown(theirs[best])} ({len(runs[best])})"
        ratio = f"{arrival(ours) / theirs[best]:.2f}" if theirs[best] < inf else "–"
        against = against if theirs[best] < inf else f"none arrives ({len(theirs)} strategies)"
    chance, shown = ours[0]["invalid_share"], f"{_shown(arrival(ours))} ({len(ours)})"
    shares = (_failed(ours, until_close=True), _failed(ours, until_close=False))
    of_chance = f"{_failed_share(ours) / chance:.2f}" if chance else "–"
    return name, f"{chance:.1%}", shown, ceiling, against, ratio, *shares, of_chance


def arrival(lines: Sequence[Line]) -> float:
    """The median number of evaluations until within 5 %; infinite if most runs never were."""
    return median(needed(line) for line in lines)


def _details(name: str, runs: Runs) -> str:
    columns = ("search", "runs", "to 5 %", "quartiles", "arrived", *(f"best at {n}" for n in CHECKPOINTS))
    rows = [_row(search, listed) for search, listed in sorted(runs.items(), key=lambda r: arrival(r[1]))]
    return f"\n## {name}\n\n{table((*columns, 'failed', 'failed until 5 %'), rows)}"


def _row(search: str, lines: list[Line]) -> Sequence[object]:
    ordered = sorted(needed(line) for line in lines)
    low, high = ordered[len(ordered) // 4], ordered[3 * len(ordered) // 4]
    arrived = sum(line["close"] is not None for line in lines) / len(lines)
    bests = [_median([line["best"][i] for line in lines]) for i in range(len(CHECKPOINTS))]
    shares = (_failed(lines, until_close=False), _failed(lines, until_close=True))
    quartiles = f"{_shown(low)} to {_shown(high)}"
    return search, len(lines), _shown(arrival(lines)), quartiles, f"{arrived:.0%}", *bests, *shares


def _median(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{median(known):.3f}" if len(known) == len(values) else "–"


def _failed(lines: Sequence[Line], until_close: bool) -> str:
    if not until_close:
        return f"{_failed_share(lines):.1%}"
    spent = sum(line["close"] or line["evaluations"] for line in lines)
    return f"{sum(line['failed_until_close'] for line in lines) / spent:.1%}"


def _failed_share(lines: Sequence[Line]) -> float:
    return float(sum(line["failed"] for line in lines) / sum(line["evaluations"] for line in lines))


def _shown(value: float) -> str:
    return "> budget" if value == inf else f"{value:g}"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"
