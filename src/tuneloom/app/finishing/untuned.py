"""The untuned model, which the tuned one is compared with: compiled while kernels are tuned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tuneloom.app.conducting.programs import Step
from tuneloom.app.finishing.contests import FinishingSteps
from tuneloom.engine.calls import Call, CallResult
from tuneloom.model import ModelRecipe, StageKind
from tuneloom.scheduling.stages import SlotDemand

_COMPILE = "tuneloom.tuners.tvm.models.making.compiled:compile_plain"

Follow = Callable[[], Sequence[Step]]


@dataclass(slots=True)
class UntunedModel:
    """Compiles the untuned model once, early or at the end of the job, whoever asks first.

    If it fails, compiling the tuned model tries again and says what is wrong.
    """

    steps: FinishingSteps
    recipe: ModelRecipe
    begun: bool = False
    running: bool = False
    _waiting: list[Follow] = field(default_factory=list)

    def begin(self, needs: SlotDemand, expected_s: float, limit_s: float) -> list[Step]:
        """The step that compiles it; none if that was begun before."""
        if self.begun:
            return []
        self.begun = self.running = True
        call = Call(function=_COMPILE, arguments=(self.recipe,), worker=self.steps.home, timeout_s=limit_s)
        kind = StageKind.FINALISE
        return [self.steps.step("plain", 1, kind, "", needs, lambda: call, self._ended, expected_s)]

    def then(self, follow: Follow) -> None:
        """Ask for what follows when it is there; only while it is `running`."""
        self._waiting.append(follow)

    def _ended(self, _result: CallResult, _at_s: float) -> Sequence[Step]:
        self.running = False
        return [step for follow in self._waiting for step in follow()]
