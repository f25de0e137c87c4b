"""What engines report, passed on to programs and core."""

from typing import assert_never

from tuneloom.app.conducting.dispatch import Dispatch
from tuneloom.app.conducting.listening import Listener
from tuneloom.app.conducting.programs import Step
from tuneloom.app.conducting.underway import StepUnderway
from tuneloom.engine.api import (
    EngineReport,
    MachineLost,
    ResourceDisturbed,
    ResourceJoined,
    ResourceLeft,
    ResourceShared,
)
from tuneloom.engine.calls import CallBegan, CallEnded, CallResult, CallWaits, Died, Lost, TimedOut
from tuneloom.scheduling.messages import StageFinished, StageLost
from tuneloom.scheduling.stages import DeviceDemand


class Hearing:
    """Asks programs what follows from the ends of their calls; nothing is started here."""

    def __init__(self, dispatch: Dispatch, listener: Listener) -> None:
        self._dispatch = dispatch
        self._listener = listener
        self._programs = dispatch.programs
        self._underway = dispatch.underway
        self._inventory = dispatch.inventory

    def hear(self, report: EngineReport) -> None:
        """Take in one report."""
        match report:
            case CallEnded():
                self._call_ended(report)
            case ResourceJoined():
                self._inventory.joined(report.offer)
            case ResourceLeft():
                self._inventory.left(report.name, report.reason)
            case ResourceDisturbed() | ResourceShared():
                self._inventory.used_by_others(report)
            case CallWaits() | CallBegan():
                self._waits_or_began(report)
            case MachineLost():
                self._inventory.machine_lost(report)
            case _:
                assert_never(report)

    def give_up_overdue(self) -> None:
        """End calls whose steps want to wait no longer."""
        now_s, zero_s = self._dispatch.now_s(), self._dispatch.zero_s
        for id, out in self._underway.running():
            if self._is_overdue(out, now_s):
                self._dispatch.inbox.stop(id)
                given_up = TimedOut(after_s=round(now_s - out.started_s, 1))
                began_s, ended_s = out.started_s + zero_s, now_s + zero_s
                self._call_ended(CallEnded(id=id, result=given_up, started_s=began_s, ended_s=ended_s))

    def _is_overdue(self, out: StepUnderway, now_s: float) -> bool:
        try:
            return out.overdue(now_s)
        except Exception as error:
            self._programs.blame(out.step.request.job, error)
            return False

    def _waits_or_began(self, report: CallWaits | CallBegan) -> None:
        """The time of a step does not run while it waits for a device that another process uses."""
        out = self._underway.get(report.id)
        if out is None or out.call is None or out.grant is None:
            return  # its job has ended
        out.waiting = isinstance(report, CallWaits)
        if isinstance(report, CallBegan):
            out.started_s = report.at_s - self._dispatch.zero_s
            self._listener.resource_waited_for(out.step.request.job, out.grant.resource, report.waited_s)

    def _call_ended(self, ended: CallEnded) -> None:
        out = self._underway.get(ended.id)
        if out is None or out.call is None or out.grant is None:
            return  # its job has ended
        request, resource = out.step.request, out.grant.resource
        if isinstance(ended.result, Lost):
            self._dispatch.back_in_line(out)
            self._dispatch.tell(StageLost(at_s=self._dispatch.now_s(), job=request.job, stage=request.id))
            return
        if not out.needless:
            self._report(out, ended)
        self._step_ended(ended.id, out, ended.result)
        if out.step.judges is not None:
            self._judge(out.step, resource, ended.result)

    def _report(self, out: StepUnderway, ended: CallEnded) -> None:
        span, needs = out.span(ended, self._dispatch.zero_s), out.step.request.needs
        self._listener.ran(span)
        if isinstance(needs, DeviceDemand):
            self._listener.device_used(span.job, needs.key, span.end_s - span.start_s)

    def _step_ended(self, id: str, out: StepUnderway, result: CallResult) -> None:
        """Ask the program what follows; it hears itself that its worker died."""
        job, stage, now_s = out.step.request.job, out.step.request.id, self._dispatch.now_s()
        if isinstance(result, Died | TimedOut) and out.call is not None and out.call.place is not None:
            self._inventory.placing.forget_worker(out.call.worker or "", out.call.place.machine)
        try:
            following = out.step.ended(result, now_s)
            done = self._programs[job].done
        except Exception as error:
            self._programs.blame(job, error)
        if self._programs.is_broken(job):
            return
        if following is None:
            out.wait_again(now_s)
            self._dispatch.tell(StageLost(at_s=now_s, job=job, stage=stage))
            return
        self._underway.remove(id)
        self._underway.add(job, following, now_s)
        ready = tuple(step.request for step in following)
        self._dispatch.tell(StageFinished(at_s=now_s, job=job, stage=stage, ready=ready, done=done))

    def _judge(self, step: Step, resource: str, result: CallResult) -> None:
        """Hear what a canary says of its device."""
        trouble = ""
        with self._programs.blaming(step.request.job):
            trouble = step.judges(result) if step.judges is not None else ""
        self._inventory.judged(resource, trouble)
