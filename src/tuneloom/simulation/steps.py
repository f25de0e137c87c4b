"""Stage times as data: what a simulated lane goes through."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from tuneloom.errors import InputError
from tuneloom.scheduling.stages import Demand, DeviceDemand


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedStep:
    """One stage of a lane, in one part or several.

    A `streamed` step hands each part on as it is done: part i of the next step starts
    after part i of this one. Otherwise the next step starts when all parts are done.
    Steps of a job with the same `home` run on the same host.
    """

    kind: str
    needs: Demand
    parts: tuple[float, ...]
    streamed: bool = False
    home: str = ""

    def __post_init__(self) -> None:
        if not self.parts or min(self.parts) < 0:
            raise InputError(f"stage {self.kind!r} needs times of at least 0 s, got {list(self.parts)}")

    @property
    def seconds(self) -> float:
        """The work of all parts together."""
        return sum(self.parts)


class Rounds(Sequence[TimedStep]):
    """The same steps over and over, without a copy for every round."""

    def __init__(self, steps: tuple[TimedStep, ...], rounds: int) -> None:
        self.steps = steps
        self.rounds = rounds

    def __len__(self) -> int:
        return len(self.steps) * self.rounds

    @overload
    def __getitem__(self, index: int) -> TimedStep: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[TimedStep]: ...
    def __getitem__(self, index: int | slice) -> TimedStep | Sequence[TimedStep]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self.steps[index % len(self.steps)]


def feeds_by_part(lane: Sequence[TimedStep], index: int) -> bool:
    """Whether this step hands its parts one by one to the next."""
    if not lane[index].streamed or index + 1 >= len(lane):
        return False
    return len(lane[index].parts) == len(lane[index + 1].parts)


class ChainClock:
    """How long a lane's own chain takes from some step on, if nothing ever waits."""

    def __init__(self, lane: Sequence[TimedStep]) -> None:
        pattern = lane.steps if isinstance(lane, Rounds) else tuple(lane)
        self._until = [0.0]
        for step in pattern:
            self._until.append(self._until[-1] + _chain_s(step))
        self._rounds = len(lane) // len(pattern) if pattern else 0

    def remaining_s(self, step: int) -> float:
        """From the start of this step to the end of the lane."""
        done_rounds, place = divmod(step, len(self._until) - 1)
        return (self._rounds - done_rounds) * self._until[-1] - self._until[place]


def _chain_s(step: TimedStep) -> float:
    """Streamed parts overlap with what they feed; parts on a device follow each other."""
    if step.streamed:
        return step.parts[0]
    return step.seconds if isinstance(step.needs, DeviceDemand) else max(step.parts)
