"""Many seeded runs on a recording, and what they say together."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from statistics import median

from threadpoolctl import threadpool_limits

from tuneloom.model import ReasonedTrial
from tuneloom.tuners.kernel.factors import Point
from tuneloom.tuners.kernel.search.searches import PointSearch, new_search
from tuneloom.tuners.kernel.search.terms import Terms
from tuneloom.tuners.replay.recording import Entry, Recording

CHECKPOINTS = (25, 50, 100, 200)
CLOSE = 0.05
"""A run has arrived when it is at most this share slower than the optimum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedTrial(ReasonedTrial):
    """One trial of a run: what was proposed and why, and its time (None: it failed)."""

    point: Point


@dataclass(frozen=True, slots=True)
class Summary:
    """What the runs of one search on one recording have in common.

    `to_close` is the median number of evaluations until within 5 % of the optimum,
    failures counted (infinite: most runs did not arrive), `best` the median best time
    at each checkpoint relative to the optimum, `spread` the distance between the
    quartiles of `to_close`.
    """

    recording: str
    search: str
    runs: int
    to_close: float
    spread: float
    arrived: float
    best: dict[int, float]
    invalid_share: float
    invalid_until_close: float


def replayed(
    recording: Recording, search: str, terms: Terms, until_close: bool = False
) -> list[float | None]:
    """The times one seeded run saw, in order, None for failures; shorter if the space is spent.

    `until_close` ends a run that is within 5 % of the optimum.
    """
    return [entry.time_ms for entry in visited(recording, search, terms, until_close)]


def visited(recording: Recording, search: str, terms: Terms, until_close: bool = False) -> list[Entry]:
    """Everything one seeded run found, in order; see `replayed`."""
    points = new_search(search, recording.space, terms)
    entries: list[Entry] = []
    with threadpool_limits(limits=1, user_api="blas"):  # matrices are small: threads get in the way
        for _, entry in _evaluated(recording, points, terms.trials):
            entries.append(entry)
            if until_close and arrival([entry.time_ms], recording.best_ms) < inf:
                break
    return entries


def explained(recording: Recording, search: str, terms: Terms) -> list[ReplayedTrial]:
    """Every trial of one seeded run with its reason."""
    points = new_search(search, recording.space, terms)
    with threadpool_limits(limits=1, user_api="blas"):
        found = list(_evaluated(recording, points, terms.trials))
    return [
        ReplayedTrial(point=point, reason=points.reason(point), seconds=_seconds(entry))
        for point, entry in found
    ]


def _evaluated(recording: Recording, search: PointSearch, evaluations: int) -> Iterator[tuple[Point, Entry]]:
    """What was recorded of one proposal after the other, until the space is spent."""
    for _ in range(evaluations):
        points = search.propose(1)
        if not points:
            return
        entry = recording.at(points[0])
        search.learn(points[0], _seconds(entry))
        yield points[0], entry


def _seconds(entry: Entry) -> float | None:
    return None if entry.time_ms is None else entry.time_ms / 1e3


def summarised(recording: Recording, search: str, runs: Iterable[Sequence[float | None]]) -> Summary:
    """The summary of runs as lists of times."""
    listed = [list(run) for run in runs]
    arrivals = [arrival(run, recording.best_ms) for run in listed]
    before = [run[: int(a)] if a < inf else run for run, a in zip(listed, arrivals, strict=True)]
    return Summary(
        recording=recording.name,
        search=search,
        runs=len(listed),
        to_close=median(arrivals),
        spread=_quartile_distance(arrivals),
        arrived=sum(a < inf for a in arrivals) / len(arrivals),
        best={n: median(_best(run, n) for run in listed) / recording.best_ms for n in CHECKPOINTS},
        invalid_share=_share([t for run in listed for t in run]),
        invalid_until_close=_share([t for run in before for t in run]),
    )


def arrival(run: Sequence[float | None], best_ms: float) -> float:
    """The number of evaluations until within 5 % of the optimum; infinite if never."""
    limit = best_ms * (1 + CLOSE)
    return next((float(i) for i, t in enumerate(run, 1) if t is not None and t <= limit), inf)


def _best(run: Sequence[float | None], evaluations: int) -> float:
    return min((t for t in run[:evaluations] if t is not None), default=inf)


def _share(times: Sequence[float | None]) -> float:
    return sum(t is None for t in times) / max(len(times), 1)


def _quartile_distance(arrivals: Sequence[float]) -> float:
    ordered = sorted(arrivals)
    low, high = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    return inf if high == inf else high - low
