"""A job that tunes nothing: any chain of calls can be scheduled.

The core knows of a job only which stages are ready, what they need and when they are done;
this program gives it stages that call whatever they are told to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tuneloom.app.conducting.programs import Step
from tuneloom.engine.calls import Call, CallResult
from tuneloom.scheduling.stages import Demand, DeviceDemand, JobTicket, SlotDemand, StageRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class MockStage:
    """One stage: a name, a call, and the key of the device it needs; without a key, a slot of a host."""

    kind: str
    call: Call
    device_key: str | None = None

    @property
    def needs(self) -> Demand:
        return SlotDemand() if self.device_key is None else DeviceDemand(key=self.device_key)


@dataclass(slots=True)
class MockJob:
    """Runs stages one after another and keeps their results, good or bad."""

    name: str
    stages: Sequence[MockStage]
    priority: int = 0
    waits_for_devices: bool = False
    results: list[CallResult] = field(default_factory=list)
    _stopping: bool = field(default=False, init=False)

    @property
    def ticket(self) -> JobTicket:
        keys = frozenset(stage.device_key for stage in self.stages if stage.device_key is not None)
        return JobTicket(
            id=self.name,
            priority=self.priority,
            device_keys=keys,
            waits_for_devices=self.waits_for_devices,
        )

    @property
    def done(self) -> bool:
        return self._stopping or len(self.results) == len(self.stages)

    def begin(self, at_s: float) -> Sequence[Step]:
        return self._next()

    def stopping(self) -> None:
        self._stopping = True

    def worker_lost(self, worker: str) -> None:
        """Its stages keep nothing."""

    def _next(self) -> list[Step]:
        number = len(self.results)
        if self.done:
            return []
        stage = self.stages[number]
        following = self.stages[number + 1].needs if number + 1 < len(self.stages) else None
        request = StageRequest(
            id=f"{number}/{stage.kind}",
            job=self.name,
            lane="only",
            step=number,
            kind=stage.kind,
            needs=stage.needs,
            then=following,
        )
        return [Step(request=request, call=lambda: stage.call, ended=self._ended)]

    def _ended(self, result: CallResult, _at_s: float) -> Sequence[Step]:
        self.results.append(result)
        return self._next()
