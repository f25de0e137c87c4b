"""The default search: a model of time and a model of validity choose together.

After a start that is spread out, every proposal maximises the expected improvement
times the probability that the point is valid, over random points, the surroundings
of the best, and walks uphill from the most promising ones.
"""

import numpy as np
from numpy.typing import NDArray

from tuneloom.model import ProposalReason, Purpose
from tuneloom.tuners.kernel.factors import Point, Points
from tuneloom.tuners.kernel.search.caution import Caution
from tuneloom.tuners.kernel.search.encoding import Encoding
from tuneloom.tuners.kernel.search.evidence import TimeModel
from tuneloom.tuners.kernel.search.pool import Visited, as_point, best_point, open_points, unseen
from tuneloom.tuners.kernel.search.promise import log_improvement, promising
from tuneloom.tuners.kernel.search.targets import TargetScale
from tuneloom.tuners.kernel.search.terms import StartingPoint, Terms
from tuneloom.tuners.kernel.space import Space
from tuneloom.tuners.validity import ValidityModel, spread

Vector = NDArray[np.float64]
_INCUMBENTS = 5
_START = 4  # points before the model of time is asked
_UNDER_WAY = 2  # points for each known time: where many run at once, more of them start the search
_CANDIDATES = 1000  # of the pool, in choosing where to start
_ORDINARY = 300  # points that tell how likely a point drawn by chance is to be valid
_HORIZON = 20  # trials ahead whose failures are allowed for, where builds that fail are no trials
_FEW = 40  # observations up to which the model's scales are fitted anew every time
_DEFAULT, _RANDOM, _LIKELY = "default", "random", "random, likely to be valid"
_SPREAD, _INNER, _MODEL = "far from all tried", "known to build", "Gaussian process"


class GuidedSearch:
    """Proposes points and learns from their times or failures; deterministic for a seed."""

    def __init__(self, space: Space, terms: Terms) -> None:
        self._space, self._terms = space, terms
        self._rng = np.random.default_rng([terms.seed, 31])
        self._encoding = Encoding.of(space)
        self._process = TimeModel(space)
        width = self._encoding.plain(space.sample(1, self._rng)).shape[1]
        self._validity = ValidityModel(width, terms.seed)
        self._building = ValidityModel(width, terms.seed)
        self._proposed = Visited(space.width)
        self._pending: dict[Point, None] = {}
        self._times: dict[Point, float] = {}
        self._built: dict[Point, None] = {}
        self._reasons: dict[Point, ProposalReason] = {}
        self._scale = TargetScale()
        self._failed = 0
        self._fitted_at = 0

    def propose(self, count: int) -> list[Point]:
        """Up to `count` points never proposed before; none when the space is spent."""
        points: list[Point] = []
        for _ in range(count):
            point = self._next()
            if point is None:
                break
            self._proposed.add(point)
            self._pending[point] = None
            points.append(point)
        return points

    def learn(self, point: Point, seconds: float | None) -> None:
        """Take in a point's time, or None for a failure; the point is not proposed again."""
        self._proposed.add(point)
        self._pending.pop(point, None)
        self._validity.observe(self._encoding.plain(np.array([point]))[0], seconds is not None)
        if seconds is not None:
            self._times[point] = seconds
        elif self._times:  # nobody could know of limits before anything ran: those failures are not its fault
            self._failed += 1

    def hear(self, point: Point, builds: bool) -> None:
        """Take in whether a point builds; one that does not is never proposed."""
        model = self._building if self._terms.screens else self._validity
        model.observe(self._encoding.plain(np.array([point]))[0], builds)
        if builds:
            self._built[point] = None
        else:
            self._proposed.add(point)
            self._pending.pop(point, None)

    def reason(self, point: Point) -> ProposalReason | None:
        """Why a point was proposed; None for one that was not."""
        return self._reasons.get(point)

    def validity(self, points: Points) -> Vector:
        """The probability of each point to be valid, as far as it is known."""
        if self._terms.knowledge is not None:
            return self._terms.knowledge(points)
        return self._running(points) * self._builds(points)

    def _running(self, points: Points) -> Vector:
        """The probability of each point that was built to run."""
        if self._terms.knowledge is not None:
            return self._terms.knowledge(points)
        return self._validity.probability(self._encoding.plain(points))

    def _builds(self, points: Points) -> Vector:
        """The probability of each point to build, as far as building alone has shown."""
        if not self._building.failures:
            return np.ones(len(points))
        return self._building.probability(self._encoding.plain(points))

    def relevance(self) -> dict[str, float]:
        """How strongly the model of time depends on each knob, as shares of one."""
        if len(self._times) > 1:
            self._fit()
        relevance = self._process.relevance()
        total = sum(relevance.values()) or 1.0
        return {self._space.names[knob]: weight / total for knob, weight in relevance.items()}

    def _next(self) -> Point | None:
        pool = open_points(self._space, self._proposed, self._rng)
        if not len(pool):
            return None
        if not self._starting():
            return self._guided(pool)
        first = not self._proposed and self._terms.start is StartingPoint.DEFAULT
        member, point = (_DEFAULT, self._default(pool)) if first else self._start_point(pool)
        self._reasons[point] = ProposalReason(member=member, purpose=Purpose.START, risk=self._risk(point))
        return point

    def _risk(self, point: Point) -> float:
        return 1 - float(self.validity(np.array([point]))[0])

    def _default(self, pool: Points) -> Point:
        """The allowed point nearest to the first value of every knob."""
        return as_point(pool[int(np.argmin(pool.sum(axis=1)))])

    def _starting(self) -> bool:
        """Whether too little is known for the model of time, also for how much is under way."""
        known = len(self._times)
        return len(self._proposed) < _START or known < 2 or len(self._pending) > _UNDER_WAY * known

    def _start_point(self, pool: Points) -> tuple[str, Point]:
        """Who chose, and a random point, or one that is far from all tried and likely to be valid.

        What is far from all others lies in a corner, and corners of a space are seldom fast:
        of many that run at once only the first are sent there.
        """
        if self._terms.start is StartingPoint.RANDOM or not self._proposed:
            return _RANDOM, as_point(pool[0])
        if self._terms.screens and (inner := self._inner()):
            return _INNER, inner
        candidates = pool[:_CANDIDATES]
        chances = self.validity(candidates)
        if self._pending and len(self._proposed) >= _START:
            return _LIKELY, as_point(candidates[int(np.argmax(chances >= chances.mean()))])
        tried = self._encoding.smooth(np.array(list(self._proposed)))
        return _SPREAD, as_point(candidates[spread(self._encoding.smooth(candidates), tried, chances)])

    def _inner(self) -> Point | None:
        """A point that is known to build, from the middle of those that do; None where none is known."""
        known = [point for point in self._built if point not in self._proposed]
        if not known:
            return None
        rows = self._encoding.smooth(np.array(known))
        centre = self._encoding.smooth(np.array(list(self._built))).mean(axis=0)
        away = ((rows - centre) ** 2).sum(axis=1)
        ran = [point for point in self._built if point in self._proposed]
        if not ran:
            return known[int(np.argmin(away))]
        near = np.flatnonzero(away <= np.median(away))
        tried = self._encoding.smooth(np.array(ran))
        return known[int(near[spread(rows[near], tried, np.ones(len(near)))])]

    def _with_surroundings(self, pool: Points) -> Points:
        """The pool and what differs from the best points in one knob."""
        if not self._times:
            return pool
        best = sorted(self._times, key=self._times.__getitem__)[:_INCUMBENTS]
        return np.vstack([pool, unseen(self._space.variations(np.array(best)), self._proposed)])

    def _guided(self, pool: Points) -> Point:
        lowest = self._fit()
        caution = self._caution(pool)

        def score(points: Points) -> Vector:
            mean, deviation = self._process.predict(points)
            improvement = log_improvement((lowest - mean) / deviation) + np.log(deviation)
            if caution is None and not self._building.failures:
                return improvement
            return promising(points, improvement, lambda some: self._log_chance(some, caution))

        point = best_point(self._space, self._with_surroundings(pool), score, self._proposed)
        self._reasons[point] = self._reason(point, lowest)
        return point

    def _reason(self, point: Point, lowest: float) -> ProposalReason:
        mean, deviation = (float(values[0]) for values in self._process.predict(np.array([point])))
        gap = np.array([(lowest - mean) / deviation])
        return ProposalReason(
            member=_MODEL,
            purpose=Purpose.IMPROVE,
            risk=self._risk(point),
            expected_s=self._scale.seconds(mean),
            error=float(np.expm1(deviation * self._scale.spread)),
            promise=float(np.exp(log_improvement(gap)[0]) * deviation * self._scale.spread),
        )

    def _log_chance(self, points: Points, caution: Caution | None) -> Vector:
        """A build in vain costs the chance it took; a run in vain its price besides."""
        chance = np.log(np.maximum(self._builds(points), 1e-12))
        return chance if caution is None else chance + caution.log_chance(self._running(points))

    def _caution(self, pool: Points) -> Caution | None:
        """What a risk costs the next point; nothing is risky before anything failed."""
        if self._terms.knowledge is None and not self._validity.failures:
            return None
        spent = self._failed + len(self._times)
        trials = spent + _HORIZON if self._terms.screens else max(self._terms.trials, spent)
        return Caution.after(self._failed, trials, self._running(pool[:_ORDINARY]))

    def _fit(self) -> float:
        """Fit the model of time, pending points taken to be what it expects; returns the lowest target."""
        points = np.array(list(self._times))
        self._scale, targets = TargetScale.of(self._times.values())
        self._process.fit(points, targets, self._steps())
        if self._pending:
            waiting = np.array(list(self._pending))
            expected, _ = self._process.predict(waiting)
            self._process.fit(np.vstack([points, waiting]), np.concatenate([targets, expected]), 0)
        return float(targets.min())

    def _steps(self) -> int:
        known = len(self._times)
        due = known != self._fitted_at and (known <= _FEW or known >= self._fitted_at * 1.1)
        if due:
            self._fitted_at = known
        return (20 if known <= _FEW else 10) if due else 0
