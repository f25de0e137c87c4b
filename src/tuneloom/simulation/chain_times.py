"""A lane that never waits: when each of its steps begins and how much comes after it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tuneloom.simulation.capacity import Capacity
from tuneloom.simulation.steps import Rounds, TimedStep, feeds_by_part


class PlacedStep(NamedTuple):
    """A step: no earlier than `head_s` after its round begins, no later than `tail_s` before it ends."""

    step: TimedStep
    head_s: float
    tail_s: float


@dataclass(frozen=True, slots=True)
class ChainTimes:
    """One round of a lane with the least times of its steps, and how often the round comes."""

    placed: tuple[PlacedStep, ...]
    round_s: float
    rounds: int

    @classmethod
    def of(cls, lane: Sequence[TimedStep], capacity: Capacity) -> "ChainTimes":
        """Place the steps of a lane that has all resources for itself; lanes of one round are whole."""
        pattern = lane.steps if isinstance(lane, Rounds) else lane
        phases = list(_phases(pattern, capacity))
        round_s = sum(seconds for _, seconds in phases)
        placed, before_s = [], 0.0
        for steps, seconds in phases:
            after_s = round_s - before_s - seconds
            placed += _placed(steps, before_s, max(0.0, after_s))
            before_s += seconds
        return cls(tuple(placed), round_s, lane.rounds if isinstance(lane, Rounds) else 1)

    @property
    def seconds(self) -> float:
        """The whole lane."""
        return self.round_s * self.rounds


def least_span(parts: Sequence[float], at_once: int) -> float:
    """No way to run these parts, so many at once, is shorter than this.

    They share the work, the longest takes its time, and of the `k · at_once + 1` longest some
    k + 1 follow each other, which take as long as the shortest k + 1 of these.
    """
    longest_first = sorted(parts, reverse=True)
    spans = [longest_first[0], sum(parts) / at_once]
    for many in range(1, (len(parts) - 1) // at_once + 1):
        some = longest_first[: many * at_once + 1]
        spans.append(sum(some[-(many + 1) :]))
    return max(spans)


def _phases(lane: Sequence[TimedStep], capacity: Capacity) -> Iterator[tuple[tuple[TimedStep, ...], float]]:
    """Steps that follow each other, streamed pairs together, with the least time of each."""
    index = 0
    while index < len(lane):
        here = lane[index]
        span_s = least_span(here.parts, capacity.at_once(here))
        if feeds_by_part(lane, index):
            after = lane[index + 1]
            yield (here, after), _streamed_span(here, after, span_s, capacity)
            index += 2
        else:
            yield (here,), span_s
            index += 1


def _streamed_span(first: TimedStep, second: TimedStep, first_s: float, capacity: Capacity) -> float:
    pairs = max(a + b for a, b in zip(first.parts, second.parts, strict=True))
    second_s = least_span(second.parts, capacity.at_once(second))
    return max(pairs, min(first.parts) + second_s, first_s + min(second.parts))


def _placed(steps: tuple[TimedStep, ...], before_s: float, after_s: float) -> list[PlacedStep]:
    if len(steps) == 1:
        return [PlacedStep(steps[0], before_s, after_s)]
    first, second = steps
    return [
        PlacedStep(first, before_s, after_s + min(second.parts)),
        PlacedStep(second, before_s + min(first.parts), after_s),
    ]
