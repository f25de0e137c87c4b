"""What a single resource can't beat: long turns of one lane do not fit into the gaps of another."""

from collections.abc import Sequence
from itertools import pairwise

from tuneloom.simulation.chain_times import ChainTimes, PlacedStep
from tuneloom.simulation.pool_bounds import LaneDemand


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
