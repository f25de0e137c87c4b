"""A lane that never waits: when each of its steps begins and how much comes after it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tuneloom.model import Device, Host
from tuneloom.scheduling.stages import DeviceDemand
from tuneloom.simulation.steps import Rounds, TimedStep, feeds_by_part


@dataclass(frozen=True, slots=True)
class Capacity:
    """Slots of all hosts, devices by key, and how many of these lend themselves to hosts."""

    slots: int
    devices: dict[str, int]
    lending: int
    lending_keys: frozenset[str]

    @classmethod
    def of(cls, resources: Iterable[Host | Device]) -> "Capacity":
        """The sum of these resources."""
        resources = list(resources)
        devices = [resource for resource in resources if isinstance(resource, Device)]
        keys = sorted({device.key for device in devices})
        lending_keys = frozenset(device.key for device in devices if device.lends_to is not None)
        return cls(
            slots=sum(resource.slots for resource in resources if isinstance(resource, Host)),
            devices={key: sum(device.key == key for device in devices) for key in keys},
            lending=sum(device.key in lending_keys for device in devices),
            lending_keys=lending_keys,
        )

    def at_once(self, step: TimedStep) -> int:
        """How many parts of a step could run at the same moment, at the most."""
        if isinstance(step.needs, DeviceDemand):
            width = self.devices.get(step.needs.key, 1)
        else:
            lent = self.lending if step.needs.lendable else 0
            width = (self.slots + lent) // step.needs.slots
        return max(1, min(width, len(step.parts)))


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
        pattern, rounds = _pattern(lane)
        placed: list[PlacedStep] = []
        phases = [_Phase.of(steps, capacity) for steps in _streams(pattern)]
        round_s, before_s = sum(phase.seconds for phase in phases), 0.0
        for phase in phases:
            after_s = max(0.0, round_s - before_s - phase.seconds)
            placed += [
                PlacedStep(step, before_s + head_s, after_s + tail_s) for step, head_s, tail_s in phase.placed
            ]
            before_s += phase.seconds
        return cls(tuple(placed), round_s, rounds)

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


class _Phase(NamedTuple):
    """Steps that stream into each other: how long they take together, and each within them."""

    placed: list[PlacedStep]
    seconds: float

    @classmethod
    def of(cls, steps: Sequence[TimedStep], capacity: Capacity) -> "_Phase":
        """Every part goes through all steps; each step waits for a first part, and a last part leaves it."""
        placed, longest_s = [], max(_through(steps))
        for index, step in enumerate(steps):
            head_s, tail_s = min(_through(steps[:index])), min(_through(steps[index + 1 :]))
            span_s = least_span(step.parts, capacity.at_once(step))
            placed.append((step, head_s, tail_s))
            longest_s = max(longest_s, head_s + span_s + tail_s)
        return cls([PlacedStep(*each) for each in placed], longest_s)


def _through(steps: Sequence[TimedStep]) -> list[float]:
    """How long each part takes through all these steps."""
    return [sum(times) for times in zip(*(step.parts for step in steps), strict=True)] or [0.0]


def _streams(lane: Sequence[TimedStep]) -> Iterator[Sequence[TimedStep]]:
    """The lane cut after every step that does not stream into the next."""
    start = 0
    for index in range(len(lane)):
        if not feeds_by_part(lane, index):
            yield lane[start : index + 1]
            start = index + 1


def _pattern(lane: Sequence[TimedStep]) -> tuple[Sequence[TimedStep], int]:
    """What a lane repeats and how often; rounds that stream into each other are one long round."""
    if not isinstance(lane, Rounds):
        return lane, 1
    if lane.rounds > 1 and feeds_by_part(lane, len(lane.steps) - 1):
        return list(lane), 1
    return lane.steps, lane.rounds
