"""The best schedules of a task side by side."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tuneloom.app.conducting.programs import Step
from tuneloom.app.finishing.choices import Choices
from tuneloom.app.finishing.verdicts import decide, opening_verdict
from tuneloom.app.tasks.outcomes import built
from tuneloom.app.tasks.progress import Contender, TaskProgress
from tuneloom.app.tuning.stage_calls import STAGES
from tuneloom.backends.resolving import backend_of_text
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.model import Artifact, JobSpec, StageKind, Trial
from tuneloom.scheduling.stages import ANY_CORE, Demand, DeviceDemand, StageRequest

CONTESTS = {
    "latency": "tuneloom.tuners.tvm.measuring.contest:contest",
    "energy": "tuneloom.tuners.tvm.measuring.contest:contest_of_energy",
}
"""How the best schedules of a kernel meet, by the goal of their job."""
_CONTEST_S = 120.0
_NEAR = 2  # times the best: a default slower than that can't win
_CLOSE = 1.25  # times the best: nor can another schedule
_STEADY_NEAR, _STEADY_CLOSE = 1.3, 1.06  # the same where times repeat; a default was run only once
HOST_PARTS = frozenset({"plain", "finish/compile", "finish/export"})
"""Parts of a job's end that need a host, even if idle cores of a device were lent to them."""
AHEAD = "plain/kernels"
"""How parts are called, before their number, that compile kernels while others are still measured."""

MODEL_LANES = frozenset({"plain", "finish"})
"""Lanes of a job's end that work on the whole model."""

Ended = Callable[[CallResult, float], Sequence[Step] | None]


def needs_host(part: str) -> bool:
    """Whether a part of a job's end runs on hosts."""
    return part in HOST_PARTS or part.startswith(AHEAD)


@dataclass(slots=True)
class FinishingSteps:
    """Makes the steps of the end of a job; `models` counts how often its model was compiled.

    Parts of a lane that is not a task's use the model in the worker `home`.
    """

    job: str
    home: str
    models: int = 0

    def step(
        self,
        lane: str,
        step: int,
        kind: str,
        part: str,
        needs: Demand,
        call: Callable[[], Call],
        ended: Ended,
        expected_s: float | None = None,
    ) -> Step:
        """One step; the same step for another model is another one.

        Parts of a lane are tasks of their own: checking a model takes another time than compiling it.
        """
        request = StageRequest(
            id=f"{lane}/{kind}{part}#{self.models}",
            job=self.job,
            lane=lane,
            step=step,
            kind=str(kind),
            needs=needs,
            expected_s=expected_s,
            task=f"{lane}{part}",
            home=self.home if lane in MODEL_LANES else "",
        )
        return Step(request=request, call=call, ended=ended)


@dataclass(slots=True)
class Contests:
    """Decides verdicts; `decided` is called once for every contest that was begun.

    Contenders that were built in an earlier run are built again first. The best trials of earlier jobs
    stand in for tasks that got none of their own, and meet those whose own are slower.
    """

    steps: FinishingSteps
    spec: JobSpec
    choices: Choices
    decided: Callable[[], Sequence[Step]]
    begun: int = 0

    def begin(self, progress: TaskProgress) -> list[Step]:
        """The first steps of a task's contest; none where nothing was measured or the trials were clear."""
        key = progress.task.key
        known = self.choices.known.get(key)
        self.choices.verdicts[key] = verdict = opening_verdict(progress, known)
        steady = self.spec.goal == "latency" and backend_of_text(self.spec.target).steady
        contenders = _contenders(progress, known, steady)
        if len(contenders) < 2:
            if contenders:
                decide(verdict, contenders, [[contenders[0].seconds]], progress.default)
            return []
        self.begun += 1
        missing = [c for c in contenders if c.artifact is None]
        if not missing:
            return [self._contest_step(progress, contenders)]
        return self._rebuild_steps(progress, contenders, missing)

    def _rebuild_steps(
        self, progress: TaskProgress, contenders: list[Contender], missing: list[Contender]
    ) -> list[Step]:
        left = [len(missing)]

        def rebuilt(contender: Contender) -> Ended:
            def ended(result: CallResult, _at_s: float) -> Sequence[Step]:
                value = built(result)
                contender.artifact = value if isinstance(value, Artifact) else None
                left[0] -= 1
                ready = [c for c in contenders if c.artifact is not None]
                if left[0]:
                    return []
                return [self._contest_step(progress, ready)] if ready else self.decided()

            return ended

        return [self._rebuild_step(progress, n, c, rebuilt(c)) for n, c in enumerate(missing)]

    def _rebuild_step(self, progress: TaskProgress, number: int, contender: Contender, ended: Ended) -> Step:
        rules = self.spec.measuring
        call = Call(
            function=f"{STAGES}:build",
            arguments=(self.spec.tuner, progress.task, contender.trial.candidate, rules),
            timeout_s=rules.build_timeout_s,
            memory_bytes=rules.memory_bytes,
        )
        lane = f"f{progress.index}"
        return self.steps.step(lane, 0, StageKind.BUILD, f"/{number}", ANY_CORE, lambda: call, ended)

    def _contest_step(self, progress: TaskProgress, contenders: list[Contender]) -> Step:
        payloads = [c.artifact.payload for c in contenders if c.artifact is not None]
        goal, verdict = self.spec.goal, self.choices.verdicts[progress.task.key]
        call = Call(function=CONTESTS[goal], arguments=(payloads, self.spec.measuring), timeout_s=_CONTEST_S)

        def ended(result: CallResult, _at_s: float) -> Sequence[Step]:
            if isinstance(result, Returned):
                rounds, joules = result.value if goal == "energy" else (result.value, None)
                decide(verdict, contenders, rounds, progress.default, joules)
            else:
                verdict.note = f"contest failed: {result}"
            return self.decided()

        lane, demand = f"f{progress.index}", DeviceDemand(key=self.spec.device_key)
        return self.steps.step(lane, 1, StageKind.FINALISE, "/contest", demand, lambda: call, ended)


def _contenders(progress: TaskProgress, known: Trial | None = None, steady: bool = False) -> list[Contender]:
    """Schedules that may be the best, and the task's own where a borrowed one may lose in the model."""
    if not progress.best:
        return []
    near, close = (_STEADY_NEAR, _STEADY_CLOSE) if steady else (_NEAR, _CLOSE)
    default, best_s = progress.default, progress.best[0].seconds
    found = list(progress.best)
    if known is not None and not progress.tried(known.candidate):
        found.append(Contender(known))
    found = [contender for contender in found if contender.seconds < close * best_s]
    if not steady and progress.own is not None and all(contender is not progress.own for contender in found):
        found.append(progress.own)
    if default is not None and default.seconds < near * best_s:
        found.append(default)
    return found
