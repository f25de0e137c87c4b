"""What a pool of equal resources can't beat, seen with the heads and tails of the chains that use it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tuneloom.scheduling.stages import DeviceDemand
from tuneloom.simulation.chain_times import Capacity, ChainTimes, PlacedStep
from tuneloom.simulation.steps import TimedStep

EVALUATIONS = 60_000
"""How many lanes are looked at, in all, in search of the moments that bind most."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """Work of one step: none before `start_s`, then at most `rate` of it a second."""

    start_s: float
    rate: float
    work_s: float

    def done(self, at_s: float) -> float:
        """The most that can be done by then."""
        return min(self.work_s, self.rate * max(0.0, at_s - self.start_s))


@dataclass(frozen=True, slots=True)
class LaneDemand:
    """What one lane asks of one pool: its turns there in each round, and how early and late they can be."""

    arrives_s: float
    times: ChainTimes
    turns: tuple[PlacedStep, ...]
    from_start: tuple[Ramp, ...]
    from_end: tuple[Ramp, ...]

    @classmethod
    def of(
        cls, arrives_s: float, times: ChainTimes, counts: Callable[[TimedStep], bool], capacity: Capacity
    ) -> "LaneDemand":
        """The demand of the steps that count for this pool."""
        turns = tuple(placed for placed in times.placed if counts(placed.step))
        return cls(
            arrives_s,
            times,
            turns,
            tuple(_ramp(turn.step, turn.head_s, capacity) for turn in turns),
            tuple(_ramp(turn.step, turn.tail_s, capacity) for turn in turns),
        )

    @property
    def work_s(self) -> float:
        """All of it."""
        return sum(ramp.work_s for ramp in self.from_start) * self.times.rounds

    def possible_by(self, at_s: float) -> float:
        """The most it can have had by this moment, having arrived when it did."""
        return self._within(self.from_start, at_s - self.arrives_s)

    def possible_within_last(self, seconds: float) -> float:
        """The most it can leave for the last seconds, if its chain shall be through by then."""
        return self._within(self.from_end, seconds)

    def _within(self, ramps: tuple[Ramp, ...], seconds: float) -> float:
        if seconds <= 0:
            return 0.0
        if seconds >= self.times.seconds:
            return self.work_s
        rounds, rest_s = divmod(seconds, self.times.round_s)
        return rounds * sum(ramp.work_s for ramp in ramps) + sum(ramp.done(rest_s) for ramp in ramps)


def _ramp(step: TimedStep, start_s: float, capacity: Capacity) -> Ramp:
    slots = 1 if isinstance(step.needs, DeviceDemand) else step.needs.slots
    return Ramp(start_s, float(capacity.at_once(step) * slots), step.seconds * slots)


def busy_bound(lanes: Sequence[LaneDemand], width: int) -> float:
    """No schedule on `width` resources ends before this.

    Let all end at T. Until a moment s a lane can't have had more of the pool than its chain
    allows since its arrival, nor can it have more than its chain allows in the last x seconds.
    What is left of its demand is served between s and T - x, by `width` at once; so, if
    anything is left, T is at least s + x + that / width. (If s were after T - x, nothing could
    be left.) This holds for all s and x; good ones are searched for.
    """
    demands = [(lane, lane.work_s) for lane in lanes if lane.work_s > 0]
    if not demands:
        return 0.0

    def bound(at_s: float, last_s: float) -> float:
        left_s = 0.0
        for lane, work_s in demands:
            left_s += max(0.0, work_s - lane.possible_by(at_s) - lane.possible_within_last(last_s))
        return at_s + last_s + left_s / width if left_s > 1e-9 else 0.0

    end_s = max(lane.arrives_s + lane.times.seconds for lane in lanes)
    longest_s = max(lane.times.seconds for lane in lanes)
    return _climb(bound, end_s, longest_s, max(1, EVALUATIONS // (8 * len(lanes))))


def _climb(bound: Callable[[float, float], float], end_s: float, longest_s: float, points: int) -> float:
    """The best of a coarse look along both axes in turn, refined by ever smaller steps."""
    points = min(points, 48)
    at_s = last_s = best = 0.0
    for _ in range(2):
        for s in (end_s * n / points for n in range(points)):
            if (found := bound(s, last_s)) > best:
                best, at_s = found, s
        for x in (longest_s * n / points for n in range(points)):
            if (found := bound(at_s, x)) > best:
                best, last_s = found, x
    step_s = end_s / points
    for _ in range(points // 3):
        moves = ((step_s, 0.0), (-step_s, 0.0), (0.0, step_s), (0.0, -step_s))
        around = [(max(0.0, at_s + ds), max(0.0, last_s + dx)) for ds, dx in moves]
        found, place = max((bound(s, x), (s, x)) for s, x in around)
        if found > best:
            best, (at_s, last_s) = found, place
        else:
            step_s /= 2
    return best


def gap_bound(lanes: Sequence[LaneDemand]) -> float:
    """No schedule on a single resource ends before this.

    Take one lane. Between two of its turns on the resource it is away for a while, at the
    longest for a gap g. A turn of another lane that takes p > g can't hide in there: it holds
    the lane up by p - g at least, and two of them in one gap by no less than both apart. Only
    before the lane's first turn and after its last there may be more room than g, which is
    allowed for.
    """
    lanes = [lane for lane in lanes if lane.work_s > 0]
    return max((_held_up(lane, lanes) for lane in lanes), default=0.0)


def _held_up(lane: LaneDemand, lanes: Sequence[LaneDemand]) -> float:
    alone_s = lane.arrives_s + lane.times.seconds
    if any(len(turn.step.parts) > 1 for turn in lane.turns):
        return alone_s
    gap_s = _longest_gap(lane.turns, lane.times)
    others = [other for other in lanes if other is not lane and _beyond(other, gap_s) > 0]
    if not others:
        return alone_s
    lost_s = sum(_beyond(other, gap_s) for other in others)
    before_s = lane.turns[0].head_s + lane.arrives_s
    before_s -= min(other.turns[0].head_s + other.arrives_s for other in others)
    after_s = lane.turns[-1].tail_s - min(other.turns[-1].tail_s for other in others)
    room_s = max(0.0, before_s - gap_s) + max(0.0, after_s - gap_s)
    return alone_s + max(0.0, lost_s - room_s)


def _longest_gap(turns: Sequence[PlacedStep], times: ChainTimes) -> float:
    """The longest time a lane is away between two turns, if it never waits."""
    away_s = [_end_s(turn, times) for turn in turns]
    gaps = [later.head_s - end_s for (_, later), end_s in zip(pairwise(turns), away_s, strict=False)]
    if times.rounds > 1:
        gaps.append(turns[-1].tail_s + turns[0].head_s)
    return max(gaps, default=0.0)


def _end_s(turn: PlacedStep, times: ChainTimes) -> float:
    return times.round_s - turn.tail_s


def _beyond(lane: LaneDemand, gap_s: float) -> float:
    """By how much the turns of a lane exceed a gap, all together."""
    parts = [part for turn in lane.turns for part in turn.step.parts]
    return lane.times.rounds * sum(max(0.0, part - gap_s) for part in parts)
