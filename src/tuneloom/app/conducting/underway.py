"""Steps between the core and the engine."""

from dataclasses import dataclass

from tuneloom.app.conducting.listening import Span
from tuneloom.app.conducting.programs import Step
from tuneloom.engine.calls import Call, CallEnded
from tuneloom.scheduling.stages import Grant


@dataclass(slots=True)
class StepUnderway:
    """A step that is with the core or the engine; `grant` and `call` are set while it runs.

    `losses` counts the devices and machines that were lost while it ran there.
    """

    step: Step
    ready_s: float
    grant: Grant | None = None
    call: Call | None = None
    started_s: float = 0.0
    losses: int = 0

    def overdue(self, now_s: float) -> bool:
        """Whether it runs, and its step wants to wait no longer."""
        asked = self.step.overdue if self.grant is not None else None
        return asked is not None and asked(now_s - self.started_s, now_s)

    def wait_again(self, now_s: float) -> Call | None:
        """It has to be done again; the answer is the call that came to nothing."""
        call, self.call, self.grant, self.ready_s = self.call, None, None, now_s
        return call

    def span(self, ended: CallEnded, zero_s: float) -> Span:
        """How it ran, on the clock of the run, which began at `zero_s` of the engine's."""
        assert self.grant is not None
        request = self.step.request
        return Span(
            job=request.job,
            task=request.task or request.lane,
            kind=request.kind,
            resource=self.grant.resource,
            slots=self.grant.slots,
            ready_s=self.ready_s,
            start_s=ended.started_s - zero_s,
            end_s=ended.ended_s - zero_s,
        )


def call_id(job: str, stage: str) -> str:
    """The id under which the engine knows a stage of a job."""
    return f"{job}\x1f{stage}"


def is_of(job: str, id: str) -> bool:
    """Whether an id is one of this job's stages."""
    return id.startswith(f"{job}\x1f")
