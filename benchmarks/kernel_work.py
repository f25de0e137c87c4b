"""Many seeded runs of kernel searches on several cores, kept line by line.

What a file holds already is not run again, so that an interrupted measurement goes on
where it was. Every search gets its first seed before any gets its second.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import islice
from math import inf
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import tests_on_path  # noqa: F401
from kernel_runs import (
    BLIND,
    CEILING,
    OPTUNA,
    OURS,
    PRESAMPLED,
    RANDOM_START,
    STRESS,
    Line,
    Run,
    keep,
    kept,
    measured,
)
from landscapes import landscape
from optuna_search import optuna_visited
from support.spaces import Recipe, invented, perfect_knowledge, presampled
from tuneloom.tuners.kernel.factors import Points
from tuneloom.tuners.kernel.search.guided import GuidedSearch, Vector
from tuneloom.tuners.kernel.search.terms import StartingPoint, Terms
from tuneloom.tuners.replay import files
from tuneloom.tuners.replay.opponent import KernelTunerSimulation
from tuneloom.tuners.replay.recording import Recording
from tuneloom.tuners.replay.study import arrival, visited


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One run. The source is a file, a file with `+stress`, or `landscape:CHARACTER:SEED`.

    `invented:SEED:SHARE:LIMITS` is a space of the tests.
    """

    source: str
    search: str
    seed: int
    trials: int
    until_close: bool = False


@lru_cache(maxsize=4)
def opened(source: str) -> Recording:
    """The space of a source."""
    if source.startswith("invented:"):
        _, seed, share, limits = source.split(":")
        return invented(int(seed), Recipe(invalid_share=float(share), limits=int(limits)))
    if source.startswith("landscape:"):
        _, character, seed = source.split(":")
        return landscape(character, int(seed))
    recording = files.read(Path(source.removesuffix(STRESS)))
    return recording.stressed() if source.endswith(STRESS) else recording


@lru_cache(maxsize=4)
def _opponent(source: str) -> KernelTunerSimulation:
    return KernelTunerSimulation(opened(source))


def done(piece: Piece) -> Line:
    """Carry one run out."""
    recording = opened(piece.source)
    if piece.search == PRESAMPLED:
        run, builds = built_first(recording, piece.seed, piece.trials)
        return measured(recording, piece.search, piece.seed, run) | {"builds": builds}
    return measured(recording, piece.search, piece.seed, _run(recording, piece))


def _run(recording: Recording, piece: Piece) -> Run:
    terms = Terms(piece.seed, trials=piece.trials)
    ours = partial(visited, recording, "guided", until_close=piece.until_close)
    match piece.search:
        case str(name) if name == OURS:
            return ours(terms)
        case str(name) if name == CEILING:
            return ours(replace(terms, knowledge=perfect_knowledge(recording)))
        case str(name) if name == RANDOM_START:
            return ours(replace(terms, start=StartingPoint.RANDOM))
        case str(name) if name == BLIND:
            return blind(recording, piece.seed, piece.trials)
        case str(name) if name == OPTUNA:
            rows = optuna_visited(recording, piece.seed, piece.trials)
        case strategy:
            rows = _opponent(piece.source).visited(strategy, piece.seed, piece.trials)
    return [recording.entry(row) for row in rows]


def _no_opinion(points: Points) -> Vector:
    return np.ones(len(points))


def blind(recording: Recording, seed: int, trials: int) -> Run:
    """A random start, then the same model of time, to which a failure is the slowest time seen."""
    search = GuidedSearch(recording.space, Terms(seed, StartingPoint.RANDOM, trials, _no_opinion))

    def taken(run: Run) -> float | None:
        return run[-1].time_ms or max((entry.time_ms or 0.0 for entry in run), default=0.0) or None

    return _until_close(recording, search, trials, taken)


def built_first(recording: Recording, seed: int, trials: int) -> tuple[Run, int]:
    """Our search where failures are failures to build: it builds around first, as long as that pays.

    Also returns how many points were only built; they took no time of the device.
    """
    search = GuidedSearch(recording.space, Terms(seed, trials=trials))
    samples = presampled(recording.space, lambda point: recording.at(point).time_ms is not None, seed, trials)
    for sample in samples:
        search.hear(sample.point, sample.builds)
    return _until_close(recording, search, trials, lambda run: run[-1].time_ms), len(samples)


def _until_close(
    recording: Recording, search: GuidedSearch, trials: int, taken: Callable[[Run], float | None]
) -> Run:
    """One point after the other; the search hears of each what `taken` makes of the run so far."""
    run: Run = []
    while len(run) < trials and not (run and arrival([run[-1].time_ms], recording.best_ms) < inf):
        points = search.propose(1)
        if not points:
            break
        run.append(recording.at(points[0]))
        heard_ms = taken(run)
        search.learn(points[0], None if heard_ms is None else heard_ms / 1e3)
    return run


def work(pieces: Iterable[Piece], out: Path, workers: int, minutes: float) -> None:
    """Run what the file does not hold yet, until the time is over."""
    known = {(line["recording"], line["search"], line["seed"]) for line in kept(out)}
    missing = (p for p in pieces if (opened(p.source).name, p.search, p.seed) not in known)
    end_s = time.monotonic() + minutes * 60
    with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as pool:
        for count, line in enumerate(_in_turn(pool, done, missing, 2 * workers, end_s)):
            keep(out, line)
            if count % 100 == 99:
                print(f"{count + 1} runs; the last: {line['recording']} {line['search']}", flush=True)


def _in_turn(
    pool: ProcessPoolExecutor,
    function: Callable[[Piece], Line],
    pieces: Iterator[Piece],
    most: int,
    end_s: float,
) -> Iterator[Line]:
    pending: set[Future[Line]] = set()
    while True:
        if time.monotonic() < end_s:
            pending |= {pool.submit(function, piece) for piece in islice(pieces, most - len(pending))}
        if not pending:
            return
        ended, pending = wait(pending, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in ended)
