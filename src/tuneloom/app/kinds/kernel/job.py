"""A hand-written kernel's way through the program: opened, presampled if wanted, tuned, looked at."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tuneloom.app.conducting.programs import Step
from tuneloom.app.kinds.kernel.presampling import PresampleSteps, Sample, samples_text
from tuneloom.app.kinds.kernel.tuning import KernelTuning, nothing_worked
from tuneloom.app.kinds.model.job import ModelJob, Opened
from tuneloom.app.tasks.limits import SEARCH_S
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.task_tuning import Keep
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.errors import InputError, TuneloomError
from tuneloom.model import JobSpec, SearchOptions, StageKind, Trial
from tuneloom.scheduling.stages import ANY_CORE, StageRequest
from tuneloom.tuners.kernel import ON_DEVICE, PRESAMPLED, cargo
from tuneloom.tuners.tvm.models.stages import ModelSummary

_OPEN = "tuneloom.tuners.kernel.opening:open_kernel"
_INSIGHT = "tuneloom.tuners.kernel.search.searching:insight"

_OPENING_S = 600.0  # computing a reference may take long, but not for ever


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelMemory:
    """What the store knows of a kernel job besides its trials.

    `features` are what the compiler revealed about each finished trial, with its time;
    `presampled` is what building alone showed, None before it was tried.
    """

    features: Callable[[], Sequence[tuple[Mapping[str, float], float | None]]]
    presampled: Callable[[], Sequence[Sample] | None]
    keep_presampled: Callable[[str, Sequence[Sample], float], None]


class KernelJob(ModelJob):
    """The program of one kernel; nothing is compiled at its end, but what was learned is told."""

    def __init__(
        self,
        job: str,
        spec: JobSpec,
        *,
        opened: Opened,
        keep: Keep,
        lanes: int,
        tuners: int,
        memory: KernelMemory,
    ) -> None:
        self.spare = int(spec.extra.get("spare", "0"))
        small = replace(spec, batch=1 + self.spare)
        super().__init__(
            job, small, opened=opened, keep=keep, lanes=lanes if lanes == 1 else 1 + tuners, tuners=tuners
        )
        self._memory = memory
        self._began_s = 0.0
        self._looked = False
        self.presampling_s = 0.0
        self.insight: dict[str, Any] = {}

    @property
    def done(self) -> bool:
        return self.failure is not None or self._looked

    def begin(self, at_s: float) -> Sequence[Step]:
        self._began_s = at_s
        call = Call(
            function=_OPEN, arguments=(self.recipe,), worker=f"{self.job}:model", timeout_s=_OPENING_S
        )
        return [replace(step, call=lambda: call) for step in super().begin(at_s)]

    def _model_opened(self, result: CallResult, at_s: float) -> Sequence[Step]:
        if isinstance(result, Returned):
            return super()._model_opened(result, at_s)
        self.failure = TuneloomError(f"{self.spec.name}: its reference can't be computed: {result}")
        return []

    def _take_known(self, summary: ModelSummary) -> dict[str, list[Trial]]:
        """Keep no functions in the store; refuse trials of a kernel that was changed since."""
        bare = replace(summary, tasks=tuple(replace(task, payload=b"") for task in summary.tasks))
        known = super()._take_known(bare)
        if set(known) - {task.key for task in summary.tasks}:
            self.failure = InputError(
                f"{self.spec.model} was changed after this run began, so its trials say nothing any more; "
                f"start another run"
            )
        return known

    def _begin_tuning(self, tasks: Sequence[TaskProgress], at_s: float) -> Sequence[Step]:
        if self.failure is not None:
            return []
        self._began_s = at_s
        samples = self._memory.presampled()
        if samples is None and self.spec.extra.get("presample") == "yes":
            steps = PresampleSteps(
                self.job, self.spec, tasks[0].task, lambda found, end_s: self._presampled(tasks, found, end_s)
            )
            return steps.begin()
        return self._tune(tasks, samples or (), at_s)

    def _presampled(
        self, tasks: Sequence[TaskProgress], samples: Sequence[Sample], at_s: float
    ) -> Sequence[Step]:
        self.presampling_s = at_s - self._began_s
        self._memory.keep_presampled(tasks[0].task.key, samples, self.presampling_s)
        return self._tune(tasks, samples, at_s)

    def _tune(self, tasks: Sequence[TaskProgress], samples: Sequence[Sample], at_s: float) -> Sequence[Step]:
        assert self.summary is not None
        if samples:
            extra = {**self.spec.extra, PRESAMPLED: samples_text(samples)}
            self.spec = replace(self.spec, extra=extra)
        self.tuning = tuning = KernelTuning(
            self.job,
            self.spec,
            tasks,
            self._keep,
            lanes=self._lanes,
            tuners=self._tuners,
            spare=self.spare,
            builds_on_device=bool(self.summary.facts.get(ON_DEVICE)),
        )
        for features, seconds in self._memory.features():
            tuning.teach(features, seconds)
        if self._stopping:
            tuning.stop()
        steps = tuning.begin(at_s, b"")
        tuning.spending.started_s = self._began_s
        return self._tuned(steps)

    def _meanwhile(self) -> list[Step]:
        return []

    def _begin_finish(self) -> Sequence[Step]:
        assert self.tuning is not None
        progress = self.tuning.tasks[0]
        if not progress.measured:
            self.failure = nothing_worked(self.spec.name, progress)
            return []
        return [self._look_step(progress)]

    def _look_step(self, progress: TaskProgress) -> Step:
        spec = self.spec
        options = SearchOptions(seed=spec.seed, trials=spec.budget.trials, batch=1, extra=dict(spec.extra))
        call = Call(
            function=_INSIGHT,
            arguments=(cargo.for_search(progress.task), options, list(progress.trials)),
            worker=f"{self.job}:model",
            timeout_s=SEARCH_S,
        )
        request = StageRequest(
            id="look",
            job=self.job,
            lane="look",
            step=0,
            kind=StageKind.FINALISE.value,
            needs=ANY_CORE,
            task=progress.task.name,
            home=f"{self.job}:model",
        )
        return Step(request=request, call=lambda: call, ended=self._seen)

    def _seen(self, result: CallResult, _at_s: float) -> Sequence[Step]:
        self.insight = result.value if isinstance(result, Returned) else {}
        self._looked = True
        return []
