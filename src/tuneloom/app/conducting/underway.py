"""Steps between the core and the engine."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tuneloom.app.conducting.programs import Step
from tuneloom.engine.calls import Call, CallEnded
from tuneloom.scheduling.stages import Grant
from tuneloom.store import SpanRecord


@dataclass(slots=True)
class StepUnderway:
    """A step that is with the core or the engine.

    `grant` is set while it has a resource, `call` while it runs; `losses` counts the
    devices and machines that were lost while it ran there. While it is `waiting` for a device that
    another process uses, it has not begun; one that is `needless` never does.
    """

    step: Step
    ready_s: float
    grant: Grant | None = None
    call: Call | None = None
    started_s: float = 0.0
    losses: int = 0
    waiting: bool = False
    needless: bool = False

    def overdue(self, now_s: float) -> bool:
        """Whether it runs, and its step wants to wait no longer."""
        asked = self.step.overdue if self.call is not None and not self.waiting else None
        return asked is not None and asked(now_s - self.started_s, now_s)

    def wait_again(self, now_s: float) -> Call | None:
        """It has to be done again; the answer is the call that came to nothing."""
        call, self.call, self.grant, self.ready_s = self.call, None, None, now_s
        self.waiting = False
        return call

    def span(self, ended: CallEnded, zero_s: float) -> SpanRecord:
        """How it ran, on the clock of the run, which began at `zero_s` of the engine's."""
        assert self.grant is not None
        request = self.step.request
        return SpanRecord(
            job=request.job,
            task=request.task or request.lane,
            kind=request.kind,
            resource=self.grant.resource,
            slots=self.grant.slots,
            ready_s=self.ready_s,
            start_s=ended.started_s - zero_s,
            end_s=ended.ended_s - zero_s,
        )


class Underway:
    """All steps of all jobs that are with the core or the engine, by the id of their calls."""

    def __init__(self) -> None:
        self._steps: dict[str, StepUnderway] = {}
        self._of_job: dict[str, dict[str, None]] = {}

    def add(self, job: str, steps: Sequence[Step], now_s: float) -> None:
        """Steps of a job have become possible."""
        for step in steps:
            id = call_id(job, step.request.id)
            self._steps[id] = StepUnderway(step, now_s)
            self._of_job.setdefault(job, {})[id] = None

    def get(self, id: str) -> StepUnderway | None:
        return self._steps.get(id)

    def __getitem__(self, id: str) -> StepUnderway:
        return self._steps[id]

    def remove(self, id: str) -> None:
        """A step is done."""
        out = self._steps.pop(id)
        self._of_job[out.step.request.job].pop(id, None)

    def remove_job(self, job: str) -> list[str]:
        """A job ended; the answer is the ids of the steps that it had."""
        ids = list(self._of_job.pop(job, ()))
        for id in ids:
            del self._steps[id]
        return ids

    def running(self) -> Iterator[tuple[str, StepUnderway]]:
        """The steps that may be given up while they run; steps may come and go meanwhile."""
        for id, out in list(self._steps.items()):
            if out.call is not None and out.step.overdue is not None and self._steps.get(id) is out:
                yield id, out


def call_id(job: str, stage: str) -> str:
    """The id under which the engine knows a stage of a job."""
    return f"{job}\x1f{stage}"
