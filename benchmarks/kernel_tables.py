"""The page of a comparison of kernel searches, made of its runs."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import ceil, inf
from statistics import median

from kernel_runs import CEILING, OPTUNA, OURS, STRESS, Line, needed
from landscapes import CHARACTERS
from tuneloom.tuners.replay.study import CHECKPOINTS

INTRODUCTION = """\
# Kernel search on recorded spaces

Evaluations until within 5 % of the optimum; failed evaluations count. "Ceiling" is our search with
perfect knowledge of validity; its own failures do not count. Kernel Tuner is 1.5.0 in simulation mode
with its options as shipped and a search space of its own for every run (it remembers which neighbours it
handed out, so runs that share one profit from each other); budget 200. Optuna is its TPE sampler with
options as shipped; suggestions outside the space or repeated cost it nothing. The files are those of
AutoTuningAssociation/benchmark_hub; matmul_triton_H200 is our own, of the space of
`benchmarks/record_triton.py`. "+stress" makes every point of the grid that was not recorded fail. A
number of runs below 80 means that time was short. "–" stands where some runs made fewer different
evaluations: some strategies repeat themselves. "Its best" is chosen anew for every column.
Whether to start in the middle of a space or spread out was decided on invented spaces with
pnpoly_KT_RTX_3090 in view; 40 % of dedisp's points are close, so one or two draws decide there.

Invented spaces come from `benchmarks/landscapes.py`: a character and a seed each. Methods are chosen on
even seeds; odd seeds are run only to check what was chosen. "Strategies" says how many of Kernel Tuner's were
run on a space, and in brackets how often each. The lowest of many medians of few runs is lower than what its
best strategy needs on average, so ratios are rather too high; where few strategies were run, one that was not
may be better. Where 99 % of a space fails, luck decides when the first valid point is found.

Runs of ours end at the goal, so there is no best after 25 evaluations and more, and shares of failures are
those until the goal. Times of Kernel Tuner are of fewer seeds: earlier runs did not keep them.

Times slower than the median are drawn together, and the median is taken to be at least 15 % above the best;
otherwise a search that refines its best point becomes sure of what it never measured. For the same reason the
noise of the model of time counts as doubt about points that were not measured. Tried on the development
spaces without a gain that could be told from chance: effects of pairs of knobs, products and ratios of pairs
of sizes, a second model with other scales, random trees or a model without order for some proposals, random
proposals or proposals next to the best in turns, shorter and longer length scales, a threshold below which
improvements are ignored, slow times drawn together less, always or in turns, times far above what was
expected taken as failures or cut, crossing the best points or trying what is least known while little is
promised, a larger allowance of failures, more points to start with, deviations widened by past errors, a
local search beside the model (neighbours of the best points, ranked by the model of time, by one of the
surroundings alone, or by one with shorter scales; with shares that follow success, or while the best stands),
limits drawn at random to tell where the first valid point may be, and the expected improvement per second:
fast points are cheap to measure anyway, and the search goes to them.
Powers of two can be unlike the sizes between them: a second model knows how often two divides a size, and is
asked while it explains the measurements clearly better. Asked always, it takes 1.4 times as long where halves
make no difference. `benchmarks/kernel_compare.py` compares two versions of the search.

Measured by `python benchmarks/kernel_replay.py --data RECORDINGS --landscapes all --ceiling`, drawn again
with `--report`.
"""
FURTHER = """\
Cache files of AutoTuningAssociation/benchmark_hub on several GPUs. `product` and `polygon` are gemm and
pnpoly on other GPUs. When they were first run the search had never seen them. What it gained since, a second
model of time that knows how often two divides a size, was chosen with the convolutions in view."""
UNSEEN = """\
Further files of the same collection, run once when the search was done. The GPUs are new to it, the kernels
are not: the collection's hotspot and its gemm with more knobs were not to be had."""
CHECKED = (
    "convolution_A6000",
    "convolution_RTX_2080Ti",
    "convolution_RTX_3060_laptop",
    "convolution_W7800",
    "dedispersion_A4000",
    "polygon_KTT_RTX_3090",
)
DEVELOPED = (
    "dedisp_A100",
    "gemm_KT_RTX_2080_Ti",
    "matmul_triton_H200",
    "pnpoly_KTT_RTX_2080_Ti",
    "pnpoly_KT_RTX_3090",
)
Runs = dict[str, list[Line]]


def page(lines: Iterable[Line]) -> str:
    """Tables over recorded and invented spaces, then one for each that the search was developed with."""
    spaces: dict[str, Runs] = defaultdict(lambda: defaultdict(list))
    for line in lines:
        spaces[line["recording"]][line["search"]].append(line)
    recorded = {name: spaces[name] for name in spaces if name.removesuffix(STRESS) in DEVELOPED}
    parts = [INTRODUCTION, _overview(recorded)]
    others = {name: spaces[name] for name in sorted(spaces) if name not in recorded and not _invented(name)}
    unseen = {name: runs for name, runs in others.items() if name in CHECKED}
    further = {name: runs for name, runs in others.items() if name not in unseen}
    for title, text, shown in (("Further", FURTHER, further), ("Unseen", UNSEEN, unseen)):
        if shown:
            parts.append(f"\n## {title} recorded spaces\n\n{text}\n\n{_overview(shown)}")
    for half, first in (("development", 0), ("the final check", 1)):
        chosen = {name: spaces[name] for name in sorted(spaces) if _invented(name, first)}
        if chosen:
            parts.append(f"\n## Invented spaces for {half}\n\n{_overview(chosen)}")
    return "\n".join([*parts, *(_details(name, runs) for name, runs in recorded.items())])


def _invented(name: str, rest: int | None = None) -> bool:
    """Whether a space is invented; with `rest`, whether its seed leaves it when halved."""
    character, _, seed = name.rpartition("-")
    return character in CHARACTERS and (rest is None or int(seed) % 2 == rest)


def _overview(spaces: dict[str, Runs]) -> str:
    columns = (
        "space",
        "fails at random",
        "ours (runs)",
        "ceiling",
        "strategies",
        "Kernel Tuner's best (runs)",
    )
    measures = ("ours / its best", "90 % quantile / its best", "arrived / its best", "time / its best")
    rows = [_compared(name, runs) for name, runs in spaces.items() if OURS in runs]
    return table((*columns, *measures, "Optuna", "failed of ours until then", "/ at random"), rows)


def _compared(name: str, runs: Runs) -> Sequence[object]:
    ours, chance = runs[OURS], runs[OURS][0]["invalid_share"]
    theirs = {search: listed for search, listed in runs.items() if search not in (OURS, CEILING, OPTUNA)}
    best = min(theirs, key=lambda search: arrival(theirs[search]), default=None)
    against = "not run" if best is None else f"{best} {_shown(arrival(theirs[best]))} ({len(theirs[best])})"
    if best is not None and arrival(theirs[best]) == inf:
        against = f"none arrives ({len(theirs)} strategies)"
    measures = [_ratio(of, ours, theirs.values()) for of in (arrival, late)]
    shares = [f"{arrived(listed):.0%}" for listed in (ours, max(theirs.values(), key=arrived, default=ours))]
    timed = _ratio(spent, ours, theirs.values()) if spent(ours) else "–"
    return (
        name,
        f"{chance:.1%}",
        f"{_shown(arrival(ours))} ({len(ours)})",
        _shown(arrival(runs[CEILING])) if CEILING in runs else "–" if chance else "the same",
        _strategies(theirs),
        against,
        *measures,
        " / ".join(shares),
        timed,
        _shown(arrival(runs[OPTUNA])) if OPTUNA in runs else "–",
        _failed(ours, until_close=True),
        f"{_failed_share(ours) / chance:.2f}" if chance else "–",
    )


def _strategies(runs: Runs) -> str:
    """How many strategies were run, and how often each: what their best stands on."""
    counts = sorted(map(len, runs.values()))
    if not counts:
        return "–"
    least, most = counts[0], counts[-1]
    return f"{len(counts)} ({least if least == most else f'{least} to {most}'})"


def _ratio(of: Callable[[Sequence[Line]], float], ours: Sequence[Line], theirs: Iterable[list[Line]]) -> str:
    """Ours relative to the best of theirs, by one measure."""
    best = min((value for value in map(of, theirs) if value), default=inf)
    return f"{of(ours) / best:.2f}" if 0 < best < inf else "–"


def late(lines: Sequence[Line]) -> float:
    """The number of evaluations after which nine in ten runs are within 5 %."""
    ordered = sorted(needed(line) for line in lines)
    return ordered[ceil(0.9 * len(ordered)) - 1]


def spent(lines: Sequence[Line]) -> float:
    """The median seconds of building and measuring until within 5 %; 0 where costs are not recorded."""
    costs = [line["spent_s"] if line["close"] is not None else inf for line in lines if line.get("spent_s")]
    return median(costs) if costs else 0.0


def arrived(lines: Sequence[Line]) -> float:
    """The share of runs that came within 5 %."""
    return sum(line["close"] is not None for line in lines) / len(lines)


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
    bests = [_median([line["best"][i] for line in lines]) for i in range(len(CHECKPOINTS))]
    shares = (_failed(lines, until_close=False), _failed(lines, until_close=True))
    quartiles = f"{_shown(low)} to {_shown(high)}"
    return search, len(lines), _shown(arrival(lines)), quartiles, f"{arrived(lines):.0%}", *bests, *shares


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
