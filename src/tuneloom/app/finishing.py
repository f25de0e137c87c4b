"""The end of a tuning job: contenders side by side, the model compiled, checked and exported."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tuneloom.app.origins import is_borrowed
from tuneloom.app.outcomes import built
from tuneloom.app.programs import Step
from tuneloom.app.progress import Contender, TaskProgress
from tuneloom.app.stage_calls import STAGES
from tuneloom.app.verdicts import Verdict, decide, fall_back
from tuneloom.engine.calls import Call, CallResult, Died, Raised, Returned
from tuneloom.errors import OutputError
from tuneloom.model import Artifact, JobSpec, StageKind
from tuneloom.scheduling.stages import Demand, DeviceDemand, SlotDemand, StageRequest
from tuneloom.tuners.tvm.model_stages import CheckResult, ModelRecipe

MODEL_STAGES = "tuneloom.tuners.tvm.model_stages"
WEIGH = "tuneloom.tuners.tvm.model_times:slower_in_model"
_CONTEST_S = 120.0
_CHECK_S = 3600.0


@dataclass(slots=True)
class Finish:
    """Runs the last stages of a job; `check` and `verdicts` are its result, `failure` why there is none.

    `unwritten` is the error of a model that was made but could not be put where it should go.
    """

    job: str
    spec: JobSpec
    recipe: ModelRecipe
    tasks: Sequence[TaskProgress]
    export_to: str | None
    finished: bool = False
    failure: str = ""
    unwritten: OutputError | None = None
    check: CheckResult | None = None
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    _open: int = 0
    _tries: int = 0
    _models: int = 0
    _weighed: bool = False

    def begin(self) -> list[Step]:
        """Contests of all tasks, and the untuned model meanwhile.

        Contenders that were built in an earlier run are built again first.
        """
        steps: list[Step] = []
        for progress in self.tasks:
            contenders = self._contenders(progress)
            verdict = Verdict(default_s=progress.default.seconds if progress.default else None)
            self.verdicts[progress.task.key] = verdict
            if contenders:
                self._open += 1
                steps += self._prepare(progress, contenders)
        if not steps:
            return [self._compile_step()]
        self._open += 1
        return [*steps, self._plain_step()]

    @property
    def schedules(self) -> dict[str, str]:
        """The trace to use for each task that has one; the default's where that is the fastest."""
        used = {key: v.chosen or v.kept for key, v in self.verdicts.items()}
        return {key: c.trial.candidate.configuration for key, c in used.items() if c is not None}

    def _contenders(self, progress: TaskProgress) -> list[Contender]:
        if not progress.best:
            return []
        default = progress.default
        found = list(progress.best)
        if progress.own is not None and all(contender is not progress.own for contender in found):
            found.append(progress.own)
        if default is not None and default.seconds < 2 * progress.best[0].seconds:
            found.append(default)
        return found

    def _prepare(self, progress: TaskProgress, contenders: list[Contender]) -> list[Step]:
        missing = [c for c in contenders if c.artifact is None]
        if not missing:
            return [self._contest_step(progress, contenders)]
        left = [len(missing)]

        def rebuilt(contender: Contender) -> Callable[[CallResult, float], Sequence[Step]]:
            def ended(result: CallResult, _at_s: float) -> Sequence[Step]:
                value = built(result)
                contender.artifact = value if isinstance(value, Artifact) else None
                left[0] -= 1
                ready = [c for c in contenders if c.artifact is not None]
                if left[0]:
                    return []
                return [self._contest_step(progress, ready)] if ready else self._contested(None)

            return ended

        return [self._rebuild_step(progress, n, c, rebuilt(c)) for n, c in enumerate(missing)]

    def _rebuild_step(
        self,
        progress: TaskProgress,
        number: int,
        contender: Contender,
        ended: Callable[[CallResult, float], Sequence[Step]],
    ) -> Step:
        policy = self.spec.policy
        call = Call(
            function=f"{STAGES}:build",
            arguments=(self.spec.tuner, progress.task, contender.trial.candidate, policy),
            timeout_s=policy.build_timeout_s,
        )
        return self._step(
            f"f{progress.index}",
            0,
            StageKind.BUILD,
            f"/{number}",
            SlotDemand(lendable=True),
            lambda: call,
            ended,
        )

    def _contest_step(self, progress: TaskProgress, contenders: list[Contender]) -> Step:
        payloads = [c.artifact.payload for c in contenders if c.artifact is not None]
        call = Call(
            function="tuneloom.tuners.tvm.contest:contest",
            arguments=(payloads, self.spec.policy),
            timeout_s=_CONTEST_S,
        )

        def ended(result: CallResult, _at_s: float) -> Sequence[Step]:
            if isinstance(result, Returned):
                decide(self.verdicts[progress.task.key], contenders, result.value, progress.default)
            else:
                self.verdicts[progress.task.key].note = f"contest failed: {result}"
            return self._contested(progress)

        demand = DeviceDemand(key=self.spec.device_key)
        return self._step(
            f"f{progress.index}", 1, StageKind.FINALISE, "/contest", demand, lambda: call, ended
        )

    def _contested(self, _progress: TaskProgress | None) -> Sequence[Step]:
        self._open -= 1
        return [] if self._open else [self._compile_step()]

    def _plain_step(self) -> Step:
        """The untuned model, compiled while contenders are timed; if that fails, compiling says why."""
        call = Call(function=f"{MODEL_STAGES}:compile_plain", arguments=(self.recipe,), worker=self._worker)
        return self._step(
            "plain",
            1,
            StageKind.FINALISE,
            "",
            SlotDemand(),
            lambda: call,
            lambda _result, _at_s: self._contested(None),
        )

    def _compile_step(self) -> Step:
        self._models += 1
        call = Call(
            function=f"{MODEL_STAGES}:compile_model",
            arguments=(self.recipe, self.schedules),
            worker=self._worker,
        )
        return self._step(
            "finish", 2, StageKind.FINALISE, "/compile", SlotDemand(), lambda: call, self._compiled
        )

    def _compiled(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("compiling the tuned model", result)
        return [self._check_step()]

    def _check_step(self) -> Step:
        arguments = (self.recipe.key, self.spec.seed, self._device)
        call = Call(
            function=f"{MODEL_STAGES}:check_model",
            arguments=arguments,
            worker=self._worker,
            timeout_s=_CHECK_S,
        )
        demand = DeviceDemand(key=self.spec.device_key)
        return self._step("finish", 3, StageKind.FINALISE, "/check", demand, lambda: call, self._checked)

    def _checked(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("checking the tuned model", result)
        check: CheckResult = result.value
        self.check = check
        if not check.same:
            return [self._guilty_step()]
        if self._borrowed and not self._weighed:
            return [self._weigh_step()]
        return [self._export_step()] if self.export_to else self._end()

    @property
    def _borrowed(self) -> list[str]:
        """Tasks that will run with a schedule another task gave."""
        chosen = {key: verdict.chosen for key, verdict in self.verdicts.items()}
        return [k for k, c in chosen.items() if c is not None and is_borrowed(c.trial.candidate.origin)]

    @property
    def _instead(self) -> dict[str, str]:
        """The schedules of the model if all that was borrowed gave way."""
        own = {key: self.verdicts[key].own for key in self._borrowed}
        kept = {key: trace for key, trace in self.schedules.items() if key not in own}
        return kept | {key: best[0][1].trial.candidate.configuration for key, best in own.items() if best}

    def _weigh_step(self) -> Step:
        arguments = (self.recipe.key, self._borrowed, self._instead, self.spec.seed, self._device)
        call = Call(function=WEIGH, arguments=arguments, worker=self._worker, timeout_s=_CHECK_S)
        demand = DeviceDemand(key=self.spec.device_key)
        return self._step("finish", 4, StageKind.FINALISE, "/weigh", demand, lambda: call, self._weighed_up)

    def _weighed_up(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        """Best alone is not best in the model: borrowed schedules that lose there give way."""
        self._weighed = True
        losers: list[str] = result.value if isinstance(result, Returned) else []
        for key in losers:
            fall_back(self.verdicts[key])
        if losers or isinstance(result, Died):  # a new worker has nothing compiled yet
            return [self._compile_step()]
        return [self._export_step()] if self.export_to else self._end()

    def _guilty_step(self) -> Step:
        arguments = (self.recipe.key, self.schedules, self.spec.seed, self._device)
        call = Call(function=f"{MODEL_STAGES}:guilty_kernels", arguments=arguments, worker=self._worker)
        demand = DeviceDemand(key=self.spec.device_key)
        return self._step("finish", 4, StageKind.FINALISE, "/guilty", demand, lambda: call, self._judged)

    def _judged(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("finding the wrong kernel", result)
        if not self.schedules:
            assert self.check is not None
            self.failure = (
                f"its outputs differ by {self.check.difference:.1e} from those of the untuned model"
            )
            return self._end()
        guilty = result.value or list(self.schedules)
        for key in guilty:
            verdict = self.verdicts[key]
            verdict.note = "its schedule changed the outputs of the model and was dropped"
            verdict.chosen = verdict.kept = None
        return [self._compile_step()]

    def _export_step(self) -> Step:
        call = Call(
            function=f"{MODEL_STAGES}:export_model",
            arguments=(self.recipe.key, self.export_to),
            worker=self._worker,
        )
        return self._step(
            "finish", 5, StageKind.FINALISE, "/export", SlotDemand(), lambda: call, self._exported
        )

    def _exported(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("writing the tuned model", result)
        self.unwritten = result.value
        return self._end()

    def _give_up(self, doing: str, result: CallResult) -> Sequence[Step] | None:
        self._tries += 1
        if isinstance(result, Died) and self._tries < 2:
            return [self._compile_step()]
        reason = result.error if isinstance(result, Raised) else str(result)
        self.failure = f"{doing} failed: {reason}"
        return self._end()

    def _end(self) -> list[Step]:
        self.finished = True
        return []

    @property
    def _worker(self) -> str:
        return f"{self.job}:model"

    @property
    def _device(self) -> str:
        return "cuda" if "cuda" in self.recipe.target else "cpu"

    def _step(
        self,
        lane: str,
        step: int,
        kind: str,
        part: str,
        needs: Demand,
        call: Callable[[], Call],
        ended: Callable[[CallResult, float], Sequence[Step] | None],
    ) -> Step:
        request = StageRequest(
            id=f"{lane}/{kind}{part}#{self._models}",
            job=self.job,
            lane=lane,
            step=step,
            kind=str(kind),
            needs=needs,
        )
        return Step(request=request, call=call, ended=ended)
