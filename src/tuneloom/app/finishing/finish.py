"""The end of a tuning job: contenders side by side, the model compiled, checked and exported."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneloom.app.conducting.programs import Step
from tuneloom.app.finishing.ahead import UntunedModel
from tuneloom.app.finishing.contests import HOST_PARTS, Contests, Ended, FinishingSteps
from tuneloom.app.finishing.verdicts import (
    Verdict,
    fall_back,
    may_be_handed_over,
    may_win_in_pieces,
    may_win_whole,
    misread,
    share_to_beat,
)
from tuneloom.app.tasks.limits import EXPORT_S, OPEN_S, built_s, check_s, compile_s
from tuneloom.app.tasks.progress import TaskProgress, is_borrowed
from tuneloom.backends.resolving import backend_of_text
from tuneloom.engine.calls import Call, CallResult, Died, Returned, TimedOut
from tuneloom.engine.machine import CPU_KEY
from tuneloom.errors import OutputError, in_short
from tuneloom.model import (
    CheckResult,
    ExportedModel,
    Handover,
    JobSpec,
    ModelRecipe,
    RuntimeChoice,
    StageKind,
    Trial,
)
from tuneloom.scheduling.stages import ANY_CORE, DeviceDemand
from tuneloom.tuners.tvm.lowering.payloads import NO_TRACE

COMPILING = "tuneloom.tuners.tvm.models.making.compiled"
CHECKING = "tuneloom.tuners.tvm.models.checking"
HAND_OVER = "tuneloom.tuners.tvm.models.rivals.choosing:choose"
GUESS = "tuneloom.tuners.tvm.models.guessing:first_guesses"
WEIGH = "tuneloom.tuners.tvm.models.in_model:slower_in_model"
_COMPILES = 2
_READ = 0.05  # a model that is read as it is meant was never further off; half of the default tolerance
_UNMEASURED = (
    "no such device is here, so nothing was measured: kernels run with the best that is known of them, "
    "or with a first guess"
)


@dataclass(slots=True)
class Finish:
    """Runs the last stages of a job; `check` and `verdicts` are its result, `failure` why there is none.

    `handover` tells what is left to another runtime because that is faster; None if nothing is.
    `rejected` are proposals that lost.
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
    exported: ExportedModel = field(default_factory=ExportedModel)
    check: CheckResult | None = None
    handover: Handover | None = None
    rejected: Sequence[Handover] = ()
    notes: list[str] = field(default_factory=list)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    untuned: UntunedModel | None = None
    known: Mapping[str, Trial] = field(default_factory=dict)
    """The best trials of earlier jobs on the very same kernels, where this job has nothing clearly faster."""
    same: frozenset[tuple[str, str]] = frozenset()
    """Tasks, by key, with origins of what they got from records of the very same kernel and device."""
    guesses: dict[str, str] = field(default_factory=dict)
    """Configurations for kernels of which nothing better is known than a first guess."""
    is_only_job: Callable[[], bool] = lambda: False
    """Whether nobody else wants the device now."""
    _open: int = 0
    _tries: int = 0
    _steps: FinishingSteps = field(init=False)
    _weighed: bool = False
    _model_lost: bool = False
    _unscheduled: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._steps = (
            self.untuned.steps if self.untuned else FinishingSteps(self.job, home=f"{self.job}:model")
        )

    def begin(self) -> list[Step]:
        """Contests of all tasks, and the untuned model meanwhile unless it is there already."""
        contests = Contests(self._steps, self.spec, self.verdicts, self._one_less, self.known)
        steps = [step for progress in self.tasks for step in contests.begin(progress)]
        if not self.spec.measures:
            return [self._guess_step()]
        untuned = self.untuned or UntunedModel(self._steps, self.recipe, self.spec.seed)
        self._open = contests.begun
        if steps:
            limit_s = compile_s(self.tasks) + check_s(self.tasks)
            steps += untuned.begin(ANY_CORE, built_s(self.tasks), limit_s)
        if untuned.running:
            self._open += 1
            untuned.then(self._one_less)
        return steps if self._open else [self._first_step()]

    def worker_lost(self, worker: str) -> None:
        """The model that was compiled is gone with its worker: it is compiled again when it is missed."""
        self._model_lost |= worker == self._worker

    @property
    def schedules(self) -> dict[str, str]:
        """The trace to use for each task that has one; the default's where that is the fastest."""
        used = {key: v.chosen or v.kept for key, v in self.verdicts.items()}
        traces = {key: c.trial.candidate.configuration for key, c in used.items() if c is not None}
        # Of a task where everything failed, nothing but the loops as they came in is trusted.
        barren = {key for key, v in self.verdicts.items() if v.barren}
        return self.guesses | traces | dict.fromkeys(barren | self._unscheduled, NO_TRACE)

    def _guess_step(self) -> Step:
        call = Call(function=GUESS, arguments=(self.recipe,), worker=self._worker, timeout_s=OPEN_S)
        kind = StageKind.FINALISE
        return self._steps.step("finish", 1, kind, "/guess", ANY_CORE, lambda: call, self._guessed)

    def _guessed(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("guessing how to run its kernels", result)
        untuned = self._unmeasured | (result.value.keys() - self.verdicts.keys())
        self.guesses = {key: guess for key, guess in result.value.items() if key in untuned}
        if not self.spec.measures:
            self.notes.append(_UNMEASURED)
        for key in self.guesses.keys() & self.verdicts.keys():
            self.verdicts[key].note = "not measured: an implementer's first guess is used"
        return [self._compile_step()]

    def _one_less(self) -> Sequence[Step]:
        self._open -= 1
        return [] if self._open else [self._first_step()]

    def _first_step(self) -> Step:
        """What comes when all contests are over."""
        guesses = self._unmeasured and backend_of_text(self.spec.target).good_guesses
        return self._guess_step() if guesses else self._compile_step()

    @property
    def _alone(self) -> bool:
        """Whether the cores to measure on have nothing to do until the model is compiled."""
        free = not self.spec.budget.trials or self.is_only_job()
        return free and self.spec.measures and self.spec.device_key == CPU_KEY

    @property
    def _unmeasured(self) -> set[str]:
        """Tasks that have no schedule, and of which none failed."""
        found = self.verdicts.items()
        return {key for key, v in found if v.chosen is None and v.kept is None and not v.barren}

    def _step(
        self,
        step: int,
        part: str,
        ended: Ended,
        function: str,
        *more: Any,
        limit_s: float,
        recipe: ModelRecipe | None = None,
        writes: str | None = None,
    ) -> Step:
        """A part of the end that calls a function with recipe and schedules, in the worker of the model."""
        arguments = (recipe or self.recipe, self.schedules, *more)
        spread = step == _COMPILES and self._alone
        call = Call(
            function=function,
            arguments=arguments,
            worker=self._worker,
            timeout_s=limit_s,
            spread=spread,
            writes=writes,
        )
        on_host = f"finish{part}" in HOST_PARTS and not spread
        needs = ANY_CORE if on_host else DeviceDemand(key=self.spec.device_key)
        expected_s = built_s(self.tasks) if step == _COMPILES else None
        kind = StageKind.FINALISE
        return self._steps.step("finish", step, kind, part, needs, lambda: call, ended, expected_s)

    def _compile_step(self) -> Step:
        self._steps.models += 1
        self._model_lost = False
        function, limit_s = f"{COMPILING}:compile_model", 2 * compile_s(self.tasks)
        seed = self.spec.seed if self.spec.measures else None
        more = (seed, *self._built, self._instead if self._is_weighed else None)
        return self._step(_COMPILES, "/compile", self._compiled, function, *more, limit_s=limit_s)

    @property
    def _built(self) -> tuple[list[tuple[str, str]], list[bytes]]:
        """Tasks with configurations that the model may use, and what was built for their trials."""
        found: dict[tuple[str, str], bytes] = {}
        for key, verdict in self.verdicts.items():
            for contender in (verdict.chosen, verdict.kept, *(own for _, own in verdict.own[:1])):
                if contender is not None and contender.artifact is not None:
                    found[key, contender.trial.candidate.configuration] = contender.artifact.payload
        on_host = backend_of_text(self.spec.target).on_host
        return (list(found), list(found.values())) if on_host else ([], [])

    def _compiled(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("compiling the tuned model", result)
        failed: dict[str, str] = result.value
        if failed.keys() <= self._unscheduled:
            return [self._weigh_or_check()] if self.spec.measures else self._export_or_end()
        for key, why in failed.items():
            self._leave_unscheduled(key, why)
        return [self._compile_step()]

    def _leave_unscheduled(self, key: str, why: str) -> None:
        """A schedule that TVM can't compile costs that schedule, not the model."""
        self._unscheduled.add(key)
        if key in self.verdicts:
            self.verdicts[key].drop(f"not scheduled, since TVM can't compile its schedule: {why}")

    def _check_step(self) -> Step:
        limit_s = 2 * compile_s(self.tasks) + check_s(self.tasks)
        function = f"{CHECKING}:check_model"
        return self._step(3, "/check", self._checked, function, self.spec.seed, limit_s=limit_s)

    def _checked(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("checking the tuned model", result)
        check: CheckResult = result.value
        self.check = check
        if not check.same:
            return [self._guilty_step()]
        why = misread(check, self._tolerance)
        if why and not check.arbitrary:
            self.failure = why
            return self._end()
        self.notes += [f"on made-up whole numbers {why}"] if why else []
        return self._hand_over_or_export()

    @property
    def _tolerance(self) -> float:
        """How far outputs may be from another runtime's, which computes a lower precision in its own way."""
        return max(_READ, self.spec.tolerance * (0.5 if self.spec.dtype == "float32" else 2))

    def _weigh_or_check(self) -> Step:
        """What is weighed may still change, so that it is checked, and compared with others, only then."""
        return self._weigh_step() if self._is_weighed else self._check_step()

    @property
    def _is_weighed(self) -> bool:
        """Whether borrowed schedules are still to prove themselves inside the model."""
        borrowed = self.spec.measures and not self._weighed and bool(self._borrowed)
        return borrowed and not backend_of_text(self.spec.target).steady

    @property
    def _borrowed(self) -> list[str]:
        """Tasks that will run with a schedule another task gave; not the same task in an earlier job."""
        chosen = {key: verdict.chosen for key, verdict in self.verdicts.items()}
        used = {key: c.trial.candidate.origin for key, c in chosen.items() if c is not None}
        return [key for key, origin in used.items() if is_borrowed(origin) and (key, origin) not in self.same]

    @property
    def _instead(self) -> dict[str, str]:
        """The schedules of the model if all that was borrowed gave way."""
        own = {key: self.verdicts[key].own for key in self._borrowed}
        kept = {key: trace for key, trace in self.schedules.items() if key not in own}
        return kept | {key: best[0][1].trial.candidate.configuration for key, best in own.items() if best}

    def _weigh_step(self) -> Step:
        limit_s = 3 * compile_s(self.tasks) + check_s(self.tasks)
        more = (self._borrowed, self._instead, self.spec.seed)
        return self._step(3, "/weigh", self._weighed_up, WEIGH, *more, limit_s=limit_s)

    def _weighed_up(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        """Best alone is not best in the model: borrowed schedules that lose there give way."""
        self._weighed = True
        losers: dict[str, float] = result.value if isinstance(result, Returned) else {}
        for key, instead_s in losers.items():
            fall_back(self.verdicts[key], instead_s)
        gone = isinstance(result, Died | TimedOut) or self._model_lost
        if losers or gone:  # a new worker has nothing compiled yet
            return [self._compile_step()]
        return [self._check_step()]

    def _hand_over_or_export(self) -> list[Step]:
        assert self.check is not None
        if self.check.uncompared:
            self.notes.append(f"not compared with the model's own runtime: {self.check.uncompared}")
        if self._is_kept or not may_be_handed_over(self.check):
            return self._export_or_end()
        # Who makes no trials wants an answer at once, and pieces have to be compiled.
        if self.spec.budget.trials and may_win_in_pieces(self.check):
            return [self._hand_over_step()]
        return [self._hand_over_step(pieces=False)] if self._whole_may_win else self._export_or_end()

    def _export_or_end(self) -> list[Step]:
        return [self._export_step()] if self.export_to else self._end()

    @property
    def _is_kept(self) -> bool:
        """Whether nothing may be left to another runtime: who names a device wants the model there.

        Left whole, each of many sizes would have all weights once more.
        """
        on_host = backend_of_text(self.spec.target).on_host
        return self.spec.only_tvm or bool(self.spec.ranges) or not on_host

    @property
    def _whole_may_win(self) -> bool:
        return self.check is not None and may_win_whole(self.check)

    def _hand_over_step(self, pieces: bool = True) -> Step:
        limit_s = 3 * compile_s(self.tasks) + check_s(self.tasks)
        assert self.check is not None
        more = (HAND_OVER, self.spec.seed, pieces, self._whole_may_win, share_to_beat(self.check))
        if pieces:
            return self._step(4, "/hand-over", self._handed_over, *more, limit_s=limit_s)
        return self._step(4, "/hand-over-whole", self._handed_over_whole, *more, limit_s=limit_s)

    def _handed_over(self, result: CallResult, at_s: float) -> Sequence[Step] | None:
        """Many programs are compiled for pieces: if that ends the worker, all and nothing are left to try."""
        if isinstance(result, Died | TimedOut):
            self.notes.append(
                f"pieces of the model could not be tried in ONNX Runtime: {in_short(str(result))}"
            )
            return [self._hand_over_step(pieces=False)] if self._whole_may_win else self._export_or_end()
        return self._handed_over_whole(result, at_s)

    def _handed_over_whole(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        """What can't be found out is not done: then TVM has all of the model, as before."""
        if isinstance(result, Returned):
            choice: RuntimeChoice = result.value
            self.handover, self.rejected = choice.handover, choice.rejected
            self.notes += choice.notes
        else:
            reason = in_short(str(result))
            self.notes.append(f"could not find out whether another runtime is faster: {reason}")
        return self._export_or_end()

    def _guilty_step(self) -> Step:
        limit_s = (1 + len(self.schedules)) * (compile_s(self.tasks) + check_s(self.tasks))
        function = f"{CHECKING}:guilty_kernels"
        return self._step(4, "/guilty", self._judged, function, self.spec.seed, limit_s=limit_s)

    def _judged(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("finding the wrong kernel", result)
        droppable = [key for key in self.schedules if key not in self._unscheduled]
        if not droppable:
            assert self.check is not None
            self.failure = (
                f"its outputs differ by {self.check.difference:.1e} from those of the untuned model"
            )
            return self._end()
        for key in [key for key in result.value if key in droppable] or droppable:
            self.verdicts[key].drop("its schedule changed the outputs of the model and was dropped")
            self.verdicts[key].barren = False
        return [self._compile_step()]

    def _export_step(self) -> Step:
        recipe = self.recipe if self.handover is None else self.handover.applied(self.recipe)
        function, place = f"{COMPILING}:export_model", self.export_to
        limit_s = 2 * compile_s(self.tasks) + EXPORT_S
        return self._step(
            5, "/export", self._exported, function, place, limit_s=limit_s, recipe=recipe, writes=place
        )

    def _exported(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("writing the tuned model", result)
        if isinstance(result.value, OutputError):
            self.unwritten = result.value
        else:
            self.exported = result.value
        return self._end()

    def _give_up(self, doing: str, result: CallResult) -> Sequence[Step] | None:
        if self._model_lost:
            return [self._compile_step()]
        self._tries += 1
        if isinstance(result, Died) and self._tries < 2:
            return [self._compile_step()]
        self.failure = f"{doing} failed: {in_short(str(result))}"
        return self._end()

    def _end(self) -> list[Step]:
        self.finished = True
        return []

    @property
    def _worker(self) -> str:
        return self._steps.home
