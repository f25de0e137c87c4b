"""What the end of a job needs and can be made before: the untuned model, and kernels without a trial."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tuneloom.app.conducting.programs import Step
from tuneloom.app.finishing.contests import FinishingSteps
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.model import ModelRecipe, StageKind
from tuneloom.scheduling.stages import SlotDemand

_COMPILE = "tuneloom.tuners.tvm.models.making.compiled:compile_plain"

_GUESSES = "tuneloom.tuners.tvm.models.making.compiled:compile_guesses"
_CHUNK_S = 2.0  # of kernels at a time: tuning may be over any moment

Follow = Callable[[], Sequence[Step]]


@dataclass(slots=True)
class UntunedModel:
    """Compiles the untuned model once, and runs it, early or at the end of the job, whoever asks first.

    If it fails, compiling the tuned model tries again and says what is wrong. After it, first guesses of
    kernels that no trial has reached can be compiled, some at a time.
    """

    steps: FinishingSteps
    recipe: ModelRecipe
    seed: int | None
    """Of the inputs that it is run with; None if it is only to be compiled."""
    begun: bool = False
    running: bool = False
    _parts: int = 0
    _through: bool = False
    _waiting: list[Follow] = field(default_factory=list)

    def begin(self, needs: SlotDemand, expected_s: float, limit_s: float) -> list[Step]:
        """The step that compiles it; none if that was begun before."""
        if self.begun:
            return []
        self.begun = self.running = True
        arguments = (self.recipe, self.seed)
        call = Call(function=_COMPILE, arguments=arguments, worker=self.steps.home, timeout_s=limit_s)
        kind = StageKind.FINALISE
        return [self.steps.step("plain", 1, kind, "", needs, lambda: call, self._ended, expected_s)]

    def guess_kernels(self, keys: Sequence[str], limit_s: float) -> list[Step]:
        """The step that compiles some of these tasks' kernels; none while another runs or if none is left."""
        if self.running or self._through or not keys:
            return []
        self.running = True
        self._parts += 1
        arguments = (self.recipe, keys, _CHUNK_S)
        call = Call(function=_GUESSES, arguments=arguments, worker=self.steps.home, timeout_s=limit_s)
        part, needs = f"/kernels{self._parts}", SlotDemand()
        return [self.steps.step("plain", 1, StageKind.FINALISE, part, needs, lambda: call, self._guessed)]

    def _guessed(self, result: CallResult, at_s: float) -> Sequence[Step]:
        self._through = not isinstance(result, Returned) or bool(result.value)
        return self._ended(result, at_s)

    def then(self, follow: Follow) -> None:
        """Ask for what follows when it is there; only while it is `running`."""
        self._waiting.append(follow)

    def _ended(self, _result: CallResult, _at_s: float) -> Sequence[Step]:
        self.running = False
        waiting, self._waiting = self._waiting, []
        return [step for follow in waiting for step in follow()]
