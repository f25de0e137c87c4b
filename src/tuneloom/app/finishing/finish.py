"""The end of a tuning job: contenders side by side, the model compiled, checked and exported."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tuneloom.app.conducting.programs import Step
from tuneloom.app.finishing.ahead import UntunedModel
from tuneloom.app.finishing.choices import Choices
from tuneloom.app.finishing.contests import Contests, FinishingSteps
from tuneloom.app.finishing.model_steps import ModelSteps
from tuneloom.app.finishing.verdicts import (
    may_be_handed_over,
    may_win_in_pieces,
    may_win_whole,
    misread,
)
from tuneloom.app.tasks.limits import built_s, check_s, compile_s
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.backends.resolving import backend_of_text
from tuneloom.engine.calls import CallResult, Died, Returned, TimedOut
from tuneloom.engine.machine import CPU_KEY
from tuneloom.errors import OutputError, in_short
from tuneloom.model import CheckResult, ExportedModel, Handover, JobSpec, ModelRecipe, RuntimeChoice
from tuneloom.scheduling.stages import ANY_CORE

_READ = 0.05  # a model that is read as it is meant was never further off; half of the default tolerance
_UNMEASURED = (
    "no such device is here, so nothing was measured: kernels run with the best that is known of them, "
    "or with a first guess"
)


@dataclass(slots=True)
class Finish:
    """Runs the last stages of a job; `check` and `choices` are its result, `failure` why there is none.

    `handover` tells what is left to another runtime because that is faster; None if nothing is.
    `rejected` are proposals that lost.
    `unwritten` is the error of a model that was made but could not be put where it should go.
    """

    job: str
    spec: JobSpec
    recipe: ModelRecipe
    tasks: Sequence[TaskProgress]
    export_to: str | None
    choices: Choices
    finished: bool = False
    failure: str = ""
    unwritten: OutputError | None = None
    exported: ExportedModel = field(default_factory=ExportedModel)
    check: CheckResult | None = None
    handover: Handover | None = None
    rejected: Sequence[Handover] = ()
    notes: list[str] = field(default_factory=list)
    untuned: UntunedModel | None = None
    is_only_job: Callable[[], bool] = lambda: False
    """Whether nobody else wants the device now."""
    _open: int = 0
    _tries: int = 0
    _steps: FinishingSteps = field(init=False)
    _make: ModelSteps = field(init=False)
    _weighed: bool = False
    _model_lost: bool = False

    def __post_init__(self) -> None:
        home = f"{self.job}:model"
        self._steps = self.untuned.steps if self.untuned else FinishingSteps(self.job, home)
        self._make = ModelSteps(self._steps, self.spec, self.recipe, self.tasks, self.choices)

    def begin(self) -> list[Step]:
        """Contests of all tasks, and the untuned model meanwhile unless it is there already."""
        contests = Contests(self._steps, self.spec, self.choices, self._one_less)
        steps = [step for progress in self.tasks for step in contests.begin(progress)]
        if not self.spec.measures:
            return [self._make.guess(self._guessed)]
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
        self._model_lost |= worker == self._steps.home

    def _guessed(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("guessing how to run its kernels", result)
        self.choices.guess(result.value)
        if not self.spec.measures:
            self.notes.append(_UNMEASURED)
        return [self._compile_step()]

    def _one_less(self) -> Sequence[Step]:
        self._open -= 1
        return [] if self._open else [self._first_step()]

    def _first_step(self) -> Step:
        """What comes when all contests are over."""
        guesses = self.choices.unmeasured and backend_of_text(self.spec.target).good_guesses
        return self._make.guess(self._guessed) if guesses else self._compile_step()

    @property
    def _alone(self) -> bool:
        """Whether the cores to measure on have nothing to do until the model is compiled."""
        free = not self.spec.budget.trials or self.is_only_job()
        return free and self.spec.measures and self.spec.device_key == CPU_KEY

    def _compile_step(self) -> Step:
        self._model_lost = False
        return self._make.compile(self._compiled, spread=self._alone, weighed_next=self._is_weighed)

    def _compiled(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("compiling the tuned model", result)
        if self.choices.refuse(result.value):
            return [self._compile_step()]
        return [self._weigh_or_check()] if self.spec.measures else self._export_or_end()

    def _weigh_or_check(self) -> Step:
        """What is weighed may still change, so that it is checked, and compared with others, only then."""
        return self._make.weigh(self._weighed_up) if self._is_weighed else self._check_step()

    @property
    def _is_weighed(self) -> bool:
        """Whether borrowed schedules are still to prove themselves inside the model."""
        borrowed = self.spec.measures and not self._weighed and bool(self.choices.borrowed)
        return borrowed and not backend_of_text(self.spec.target).steady

    def _weighed_up(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        """Best alone is not best in the model: borrowed schedules that lose there give way."""
        self._weighed = True
        losers: dict[str, float] = result.value if isinstance(result, Returned) else {}
        self.choices.give_way(losers)
        gone = isinstance(result, Died | TimedOut) or self._model_lost
        if losers or gone:  # a new worker has nothing compiled yet
            return [self._compile_step()]
        return [self._check_step()]

    def _check_step(self) -> Step:
        return self._make.check(self._checked)

    def _checked(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("checking the tuned model", result)
        check: CheckResult = result.value
        self.check = check
        if not check.same:
            return [self._make.find_guilty(self._judged)]
        why = misread(check, self._tolerance)
        if why and not check.arbitrary:
            self.failure = why
            return self._end()
        self.notes += [f"on made-up whole numbers {why}"] if why else []
        return self._hand_over_or_export(check)

    @property
    def _tolerance(self) -> float:
        """How far outputs may be from another runtime's, which computes a lower precision in its own way."""
        return max(_READ, self.spec.tolerance * (0.5 if self.spec.dtype == "float32" else 2))

    def _judged(self, result: CallResult, _at_s: float) -> Sequence[Step] | None:
        if not isinstance(result, Returned):
            return self._give_up("finding the wrong kernel", result)
        if self.choices.drop_guilty(result.value):
            return [self._compile_step()]
        assert self.check is not None
        difference = f"{self.check.difference:.1e}"
        self.failure = f"its outputs differ by {difference} from those of the untuned model"
        return self._end()

    def _hand_over_or_export(self, check: CheckResult) -> list[Step]:
        if check.uncompared:
            self.notes.append(f"not compared with the model's own runtime: {check.uncompared}")
        if self._is_kept or not may_be_handed_over(check):
            return self._export_or_end()
        # Who makes no trials wants an answer at once, and pieces have to be compiled.
        if self.spec.budget.trials and may_win_in_pieces(check):
            return [self._make.hand_over(self._handed_over, check, pieces=True)]
        return self._hand_over_whole_or_export()

    def _hand_over_whole_or_export(self) -> list[Step]:
        if self.check is None or not may_win_whole(self.check):
            return self._export_or_end()
        return [self._make.hand_over(self._handed_over_whole, self.check, pieces=False)]

    @property
    def _is_kept(self) -> bool:
        """Whether nothing may be left to another runtime: who names a device wants the model there.

        Left whole, each of many sizes would have all weights once more.
        """
        on_host = backend_of_text(self.spec.target).on_host
        return self.spec.only_tvm or bool(self.spec.ranges) or not on_host

    def _handed_over(self, result: CallResult, at_s: float) -> Sequence[Step] | None:
        """Many programs are compiled for pieces: if that ends the worker, all and nothing are left to try."""
        if isinstance(result, Died | TimedOut):
            reason = in_short(str(result))
            self.notes.append(f"pieces of the model could not be tried in ONNX Runtime: {reason}")
            return self._hand_over_whole_or_export()
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

    def _export_or_end(self) -> list[Step]:
        if not self.export_to:
            return self._end()
        recipe = self.recipe if self.handover is None else self.handover.applied(self.recipe)
        return [self._make.export(self._exported, recipe, self.export_to)]

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
