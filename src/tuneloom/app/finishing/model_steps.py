"""The steps at a job's end that work on the whole model: what they call, where and for how long."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tuneloom.app.conducting.programs import Step
from tuneloom.app.finishing.choices import Choices
from tuneloom.app.finishing.contests import Ended, FinishingSteps
from tuneloom.app.finishing.verdicts import may_win_whole, near_the_fastest, share_to_beat
from tuneloom.app.tasks.limits import EXPORT_S, OPEN_S, built_s, check_s, compile_s
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.engine.calls import Call
from tuneloom.model import CheckResult, JobSpec, ModelRecipe, StageKind
from tuneloom.scheduling.stages import ANY_CORE, Demand, DeviceDemand

COMPILING = "tuneloom.tuners.tvm.models.making.compiled"
CHECKING = "tuneloom.tuners.tvm.models.checking"
HAND_OVER = "tuneloom.tuners.tvm.models.rivals.choosing:choose"
GUESS = "tuneloom.tuners.tvm.models.guessing:first_guesses"
WEIGH = "tuneloom.tuners.tvm.models.in_model:slower_in_model"
KIND = StageKind.FINALISE


@dataclass(slots=True)
class ModelSteps:
    """Makes these steps; `ended` says what follows. All run in the worker that has opened the model."""

    steps: FinishingSteps
    spec: JobSpec
    recipe: ModelRecipe
    tasks: Sequence[TaskProgress]
    choices: Choices

    @property
    def worker(self) -> str:
        return self.steps.home

    def guess(self, ended: Ended) -> Step:
        call = Call(function=GUESS, arguments=(self.recipe,), worker=self.worker, timeout_s=OPEN_S)
        return self.steps.step("finish", 1, KIND, "/guess", ANY_CORE, lambda: call, ended)

    def compile(self, ended: Ended, *, spread: bool, weighed_next: bool) -> Step:
        """Compile the model, on all cores to measure on if it may spread."""
        self.steps.models += 1
        seed = self.spec.seed if self.spec.measures else None
        more = (seed, *self.choices.built, self.choices.instead if weighed_next else None)
        function, limit_s = f"{COMPILING}:compile_model", 2 * self._compile_s
        call = self._call(function, *more, limit_s=limit_s, spread=spread)
        needs = self._device if spread else ANY_CORE
        expected_s = built_s(self.tasks)
        return self.steps.step("finish", 2, KIND, "/compile", needs, lambda: call, ended, expected_s)

    def weigh(self, ended: Ended) -> Step:
        more = (self.choices.borrowed, self.choices.instead, self.spec.seed)
        call = self._call(WEIGH, *more, limit_s=3 * self._compile_s + check_s(self.tasks))
        return self._on_device(3, "/weigh", call, ended)

    def check(self, ended: Ended) -> Step:
        limit_s = 2 * self._compile_s + check_s(self.tasks)
        call = self._call(f"{CHECKING}:check_model", self.spec.seed, limit_s=limit_s)
        return self._on_device(3, "/check", call, ended)

    def find_guilty(self, ended: Ended) -> Step:
        limit_s = (1 + len(self.choices.schedules)) * (self._compile_s + check_s(self.tasks))
        call = self._call(f"{CHECKING}:guilty_kernels", self.spec.seed, limit_s=limit_s)
        return self._on_device(4, "/guilty", call, ended)

    def hand_over(self, ended: Ended, check: CheckResult, *, pieces: bool) -> Step:
        more = (self.spec.seed, pieces, may_win_whole(check), share_to_beat(check), near_the_fastest(check))
        call = self._call(HAND_OVER, *more, limit_s=3 * self._compile_s + check_s(self.tasks))
        return self._on_device(4, "/hand-over" if pieces else "/hand-over-whole", call, ended)

    def export(self, ended: Ended, recipe: ModelRecipe, place: str | None) -> Step:
        function, limit_s = f"{COMPILING}:export_model", 2 * self._compile_s + EXPORT_S
        call = self._call(function, place, limit_s=limit_s, recipe=recipe, writes=place)
        return self.steps.step("finish", 5, KIND, "/export", ANY_CORE, lambda: call, ended)

    @property
    def _compile_s(self) -> float:
        return compile_s(self.tasks)

    @property
    def _device(self) -> Demand:
        return DeviceDemand(key=self.spec.device_key)

    def _on_device(self, step: int, part: str, call: Call, ended: Ended) -> Step:
        return self.steps.step("finish", step, KIND, part, self._device, lambda: call, ended)

    def _call(
        self,
        function: str,
        *more: Any,
        limit_s: float,
        spread: bool = False,
        recipe: ModelRecipe | None = None,
        writes: str | None = None,
    ) -> Call:
        """A call of a function with recipe and schedules."""
        return Call(
            function=function,
            arguments=(recipe or self.recipe, self.choices.schedules, *more),
            worker=self.worker,
            timeout_s=limit_s,
            spread=spread,
            writes=writes,
        )
