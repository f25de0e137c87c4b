"""How far a simulated job is: which stages are ready, and when it is done."""

from collections.abc import Iterator, Sequence

from tuneloom.scheduling.stages import StageRequest
from tuneloom.simulation.jobs import SimulatedJob
from tuneloom.simulation.steps import ChainClock, TimedStep, feeds_by_part

Place = tuple[int, int, int]
"""Lane, step and part."""


class Progress:
    """Answers as the application would: what a finished stage makes ready."""

    def __init__(self, job: SimulatedJob) -> None:
        self._name = job.ticket.id
        self._prior = job.prior_factor
        self._lanes: tuple[Sequence[TimedStep], ...] = tuple(lane for lane in job.lanes() if len(lane))
        self._clocks = [ChainClock(lane) for lane in self._lanes]
        self._undone: dict[tuple[int, int], int] = {}
        self._places: dict[str, Place] = {}
        self._lanes_left = len(self._lanes)

    def start(self) -> tuple[StageRequest, ...]:
        """The stages that depend on nothing."""
        return tuple(request for lane in range(len(self._lanes)) for request in self._open_step(lane, 0))

    def seconds(self, stage: str) -> float:
        """How long this stage takes when it runs undisturbed."""
        lane, step, part = self._places[stage]
        return self._lanes[lane][step].parts[part]

    def finish(self, stage: str) -> tuple[tuple[StageRequest, ...], bool]:
        """A stage ended well: what is ready because of it, and whether the job is done."""
        lane, step, part = self._places.pop(stage)
        left = self._undone[lane, step] - 1
        self._undone[lane, step] = left
        if left == 0:
            del self._undone[lane, step]
        last = step + 1 == len(self._lanes[lane])
        if last:
            self._lanes_left -= left == 0
            return (), self._lanes_left == 0
        if feeds_by_part(self._lanes[lane], step):
            self._undone.setdefault((lane, step + 1), len(self._lanes[lane][step + 1].parts))
            return (self._request(lane, step + 1, part),), False
        return (tuple(self._open_step(lane, step + 1)) if left == 0 else ()), False

    def _open_step(self, lane: int, step: int) -> Iterator[StageRequest]:
        count = len(self._lanes[lane][step].parts)
        self._undone[lane, step] = count
        for part in range(count):
            yield self._request(lane, step, part)

    def _request(self, lane: int, step: int, part: int) -> StageRequest:
        steps = self._lanes[lane]
        here = steps[step]
        name = f"{lane}.{step}.{part}"
        self._places[name] = (lane, step, part)
        return StageRequest(
            id=name,
            job=self._name,
            lane=str(lane),
            step=step,
            kind=here.kind,
            needs=here.needs,
            then=steps[step + 1].needs if step + 1 < len(steps) else None,
            expected_s=None if self._prior is None else here.parts[part] * self._prior,
            remaining_s=None if self._prior is None else self._clocks[lane].remaining_s(step) * self._prior,
            home=here.home,
        )
