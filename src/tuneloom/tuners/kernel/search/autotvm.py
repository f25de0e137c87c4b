"""AutoTVM's search, as its papers and documentation describe it: the yardstick for others.

The first plan of 64 points is random. After every plan, boosted trees learn to rank all
points by speed (a failure has none), simulated annealing looks for the points that rank
highest, and the last of every plan are random again. After points were only built, the
start is the published one for hardware on which most fails: half of the first lesson are
points that build, far from each other, the other half points that do not; and points that
build rank higher.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.model import ProposalReason, Purpose
from tuneloom.tuners.kernel.factors import Point, Points
from tuneloom.tuners.kernel.search.encoding import Encoding
from tuneloom.tuners.kernel.search.pool import Score, Visited, as_point, coded, open_points
from tuneloom.tuners.kernel.search.terms import StartingPoint, Terms
from tuneloom.tuners.kernel.space import Space
from tuneloom.tuners.validity import spread

Vector = NDArray[np.float64]
PLAN = 64
"""Points between two lessons."""
_RANDOM_SHARE = int(0.05 * PLAN)
_LESSON = 25  # points that build, and as many that do not
_BUILDS = 1.0  # added to the rank of points that are known to build
_PARAMETERS = {
    "objective": "rank:pairwise",
    "lambdarank_pair_method": "mean",
    "lambdarank_num_pair_per_sample": 1,
    "max_depth": 3,
    "eta": 0.3,
    "gamma": 1e-4,
    "min_child_weight": 1,
    "lambda": 1.0,
    "base_score": 0.5,
    "nthread": 1,
    "verbosity": 0,
}
AT_RANDOM = ProposalReason(member="random", purpose=Purpose.EXPLORE)
_FAR_APART = ProposalReason(member="far apart, known to build", purpose=Purpose.START)
_RANKED = ProposalReason(member="ranking trees, annealed", purpose=Purpose.IMPROVE)
_MOST_ROUNDS, _PATIENCE, _EVERY = 8000, 20, 2
_WALKERS, _STEPS, _STILL = 128, 500, 50


class AutoTvmSearch:
    """Plans of 64 points by a ranking model and simulated annealing; deterministic for a seed."""

    def __init__(self, space: Space, terms: Terms) -> None:
        self._space, self._terms = space, terms
        self._rng = np.random.default_rng([terms.seed, 71])
        self._encoding = Encoding.of(space)
        self._ranking = _Ranking(terms.seed)
        self._annealing = _Annealing(space, self._rng)
        self._proposed = Visited(space.width)
        self._speeds: dict[Point, float] = {}
        self._built: dict[Point, bool] = {}
        self._plan: list[Point] | None = None
        self._at_random, self._due = 0, PLAN
        self._planned = _FAR_APART
        self._reasons: dict[Point, ProposalReason] = {}

    def propose(self, count: int) -> list[Point]:
        """Up to `count` points never proposed before; none when the space is spent."""
        if self._plan is None:
            self._plan = self._first_plan()
        points: list[Point] = []
        while len(points) < count and (point := self._next(self._plan)) is not None:
            self._proposed.add(point)
            points.append(point)
        return points

    def learn(self, point: Point, seconds: float | None) -> None:
        """Take in a point's time, or None for a failure; the point is not proposed again."""
        self._proposed.add(point)
        self._speeds[point] = 0.0 if seconds is None else 1 / seconds
        if len(self._speeds) >= self._due and any(self._speeds.values()):
            self._make_plan()

    def hear(self, point: Point, builds: bool) -> None:
        """Take in whether a point builds; one that does not is never proposed."""
        self._built[point] = builds
        if not builds:
            self._proposed.add(point)

    def relevance(self) -> dict[str, float]:
        """Nothing: the model's trees say little about single knobs."""
        return {}

    def reason(self, point: Point) -> ProposalReason | None:
        """The member that proposed a point; a plan is made of ranks, which promise no times."""
        return self._reasons.get(point)

    def _next(self, plan: list[Point]) -> Point | None:
        while plan and plan[0] in self._proposed:
            plan.pop(0)
        if len(plan) > self._at_random:
            return self._because(self._planned, plan.pop(0))
        pool = open_points(self._space, self._proposed, self._rng)
        return self._because(AT_RANDOM, as_point(pool[0])) if len(pool) else None

    def _because(self, reason: ProposalReason, point: Point) -> Point:
        self._reasons[point] = reason
        return point

    def _first_plan(self) -> list[Point]:
        """Points that build, far from each other; none where nothing was built beforehand."""
        if self._terms.start is not StartingPoint.VALIDITY or not any(self._built.values()):
            return []
        self._speeds |= dict.fromkeys(self._far_apart(builds=False), 0.0)
        plan = self._far_apart(builds=True)
        self._due = min(PLAN, len(self._speeds) + len(plan))
        return plan

    def _far_apart(self, builds: bool) -> list[Point]:
        points = np.array([p for p, known in self._built.items() if known is builds]).reshape(
            -1, self._space.width
        )
        smooth, chosen = self._encoding.smooth(points), list(range(min(1, len(points))))
        while len(chosen) < min(_LESSON, len(points)):
            chosen.append(spread(smooth, smooth[chosen], np.ones(len(points))))
        return [as_point(points[i]) for i in chosen]

    def _make_plan(self) -> None:
        points = np.array(list(self._speeds))
        speeds = np.array(list(self._speeds.values()))
        self._ranking.fit(self._encoding.plain(points), speeds / speeds.max())
        self._plan = self._annealing.best(self._looked_up() or self._score, self._proposed)
        self._at_random, self._planned = _RANDOM_SHARE, _RANKED
        self._due += PLAN

    def _looked_up(self) -> Score | None:
        """Scores from a table, where walkers would ask more often than the space has points."""
        if self._space.size > _WALKERS * _STILL:
            return None
        points = self._space.points()
        codes = coded(points)
        order = np.argsort(codes)
        known, scores = codes[order], self._score(points)[order]
        return lambda asked: np.asarray(scores[np.searchsorted(known, coded(asked))])

    def _score(self, points: Points) -> Vector:
        scores = self._ranking.scores(self._encoding.plain(points))
        if self._built:
            known = np.array([self._built.get(as_point(point), False) for point in points])
            scores = scores + _BUILDS * known
        return scores


class _Ranking:
    """Boosted trees that order points by speed, grown until the top of the order stays as it is."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._booster: Any = None

    def fit(self, rows: Vector, speeds: Vector) -> None:
        import xgboost

        data = xgboost.DMatrix(rows, label=speeds)
        self._booster = xgboost.Booster({**_PARAMETERS, "seed": self._seed}, [data])
        best, since = -1.0, 0
        for round_ in range(_MOST_ROUNDS):
            self._booster.update(data, round_)
            if round_ % _EVERY:
                continue
            recall = _recall(self._booster.predict(data), speeds)
            best, since = (recall, 0) if recall > best else (best, since + _EVERY)
            if since >= _PATIENCE:
                return

    def scores(self, rows: Vector) -> Vector:
        return np.asarray(self._booster.inplace_predict(rows), dtype=np.float64)


def _recall(predicted: Vector, speeds: Vector) -> float:
    """How much of the true top is found among as many of the predicted, on average over the first plan."""
    places = np.empty(len(speeds), dtype=np.int64)
    places[np.argsort(-speeds, kind="stable")] = np.arange(len(speeds))
    order = places[np.argsort(-predicted, kind="stable")]
    tops = np.arange(1, min(PLAN, len(order)) + 1)
    return float(np.mean([np.sum(order[:top] < top) / top for top in tops]))


class _Annealing:
    """Walkers that stay where they are between plans."""

    def __init__(self, space: Space, rng: np.random.Generator) -> None:
        self._space, self._rng = space, rng
        self._points: Points | None = None

    def best(self, score: Score, visited: Visited) -> list[Point]:
        """A plan of unvisited points with the highest scores met on the way, none below zero."""
        if self._points is None:
            self._points = self._space.sample(_WALKERS, self._rng)
        points, top = self._points, _Top(set(visited.codes.tolist()))
        scores = score(points)
        top.offer(points, scores)
        still = 0
        for step in range(_STEPS):
            moved = self._moved(points)
            reached = score(moved)
            temperature = 1 - step / (_STEPS + 1)
            gain = np.minimum((reached - scores) / (temperature + 1e-5), 1.0)
            taken = self._rng.random(len(points)) < np.exp(gain)
            points, scores = np.where(taken[:, None], moved, points), np.where(taken, reached, scores)
            still = 0 if top.offer(moved, reached) else still + 1
            if still >= _STILL:
                break
        self._points = points
        return top.points()

    def _moved(self, points: Points) -> Points:
        """Each walker with another value of one knob; walkers stay where that leaves the space."""
        shape = np.array(self._space.shape)
        free = np.flatnonzero(shape > 1)
        if not len(free):
            return points
        rows, knobs = np.arange(len(points)), self._rng.choice(free, len(points))
        moved = points.copy()
        steps = 1 + self._rng.integers(0, shape[knobs] - 1)
        moved[rows, knobs] = (points[rows, knobs] + steps) % shape[knobs]
        return np.where(self._space.allows(moved)[:, None], moved, points)


class _Top:
    """The best points offered, as many as a plan holds."""

    def __init__(self, excluded: set[int]) -> None:
        self._seen = excluded
        self._found: list[tuple[float, Point]] = []

    def offer(self, points: Points, scores: Vector) -> bool:
        """Take in points that are better than the worst kept; tells whether there was one."""
        codes = coded(points).tolist()
        floor = self._found[-1][0] if len(self._found) == PLAN else -np.inf
        taken = False
        for i in np.flatnonzero(scores > floor).tolist():
            if codes[i] not in self._seen:
                self._seen.add(codes[i])
                self._found.append((float(scores[i]), as_point(points[i])))
                taken = True
        if taken:
            self._found = sorted(self._found, key=lambda item: -item[0])[:PLAN]
        return taken

    def points(self) -> list[Point]:
        """What is kept, the best first."""
        return [point for score, point in self._found if score >= 0]
