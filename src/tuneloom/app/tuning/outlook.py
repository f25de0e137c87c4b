"""What may be expected of a job's goal and deadline, from how it has gone so far."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

Curve = Sequence[tuple[int, float]]
"""The best latency of the whole model after so many trials, whenever it fell."""

_ENOUGH = 3
_SPREAD = 2.0  # standard errors on each side
_FLOOR = 0.02  # no forecast is surer than this


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A latency that is expected, and between what it probably lies."""

    expected_s: float
    low_s: float
    high_s: float


def forecast(curve: Curve, trials: int) -> Forecast | None:
    """The latency after so many trials; None while the curve says too little.

    Best latencies fall like a power of the number of trials, ever more slowly. The line through the
    later half of the curve is drawn on; its scatter and its reach say how sure that is.
    """
    points = [(math.log(n), math.log(s)) for n, s in curve[len(curve) // 2 :] if n > 0 and s > 0]
    if len(curve) < _ENOUGH or len(points) < 2:
        return None
    slope, scatter = _line(points)
    last_n, last_s = points[-1]
    ahead = max(0.0, math.log(max(1, trials)) - last_n)
    expected = last_s + min(0.0, slope) * ahead
    sure = max(_FLOOR, scatter) * (1 + ahead) * _SPREAD
    low, high = expected - sure - abs(slope) * ahead, min(last_s, expected + sure)
    return Forecast(expected_s=math.exp(expected), low_s=math.exp(low), high_s=math.exp(high))


def _line(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Slope of the line of least squares, and how far points lie from it."""
    count = len(points)
    x, y = sum(p[0] for p in points) / count, sum(p[1] for p in points) / count
    width = sum((p[0] - x) ** 2 for p in points)
    slope = sum((p[0] - x) * (p[1] - y) for p in points) / width if width else 0.0
    rest = sum((p[1] - y - slope * (p[0] - x)) ** 2 for p in points)
    return slope, math.sqrt(rest / count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a job stands: trials made and to make, its pace, its goal and its deadline."""

    spent: int
    budget: int
    pace_s: float
    at_s: float
    goal_s: float | None = None
    deadline_s: float | None = None

    @property
    def affordable(self) -> int:
        """Trials that will have been made when the budget or the time is over."""
        if self.deadline_s is None or self.pace_s <= 0:
            return self.budget
        return min(self.budget, self.spent + max(0, int((self.deadline_s - self.at_s) / self.pace_s)))

    @property
    def late_s(self) -> float:
        """By how much the deadline is missed if the whole budget is spent."""
        if self.deadline_s is None:
            return 0.0
        return max(0.0, self.at_s + self.pace_s * (self.budget - self.spent) - self.deadline_s)


def outlook(standing: Standing, curve: Curve) -> str:
    """What a user should know early: a goal or a deadline that will hardly be met; nothing if all is well."""
    if not curve:
        return ""
    told = [_of_goal(standing, curve), _of_deadline(standing, curve)]
    return "; ".join(words for words in told if words)


def _of_goal(standing: Standing, curve: Curve) -> str:
    if standing.goal_s is None or curve[-1][1] <= standing.goal_s:
        return ""
    expected = forecast(curve, standing.affordable)
    if expected is None or expected.low_s <= standing.goal_s:
        return ""
    until = "by the deadline" if standing.affordable < standing.budget else "with this budget"
    return (
        f"the goal of {standing.goal_s * 1e3:.3g} ms will hardly be met {until}: about "
        f"{expected.expected_s * 1e3:.3g} ms ({expected.low_s * 1e3:.3g} to {expected.high_s * 1e3:.3g}) is "
        "expected; it goes on to the best it can find"
    )


def _of_deadline(standing: Standing, curve: Curve) -> str:
    if standing.late_s <= 0:
        return ""
    if standing.goal_s is not None and _reaches(standing, curve):
        return ""
    return f"the deadline will be missed by about {standing.late_s:.0f} s if the whole budget is spent"


def _reaches(standing: Standing, curve: Curve) -> bool:
    """Whether the goal is expected to end the job in time."""
    expected = forecast(curve, standing.affordable)
    return expected is not None and standing.goal_s is not None and expected.expected_s <= standing.goal_s
