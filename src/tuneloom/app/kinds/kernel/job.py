"""A hand-written kernel's way through the program: opened, presampled if wanted, tuned, looked at."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tuneloom.app.conducting.programs import Step, single_step
from tuneloom.app.kinds.base import JobContext
from tuneloom.app.kinds.kernel.presampling import KernelMemory, PresampleSteps, Sample, samples_text
from tuneloom.app.kinds.kernel.tuning import KernelTuning, nothing_worked
from tuneloom.app.kinds.tuning_job import TuningJob
from tuneloom.app.tasks.limits import SEARCH_S
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.errors import InputError, TuneloomError
from tuneloom.model import ModelSummary, SearchOptions, StageKind, Trial
from tuneloom.tuners.kernel import ON_DEVICE, PRESAMPLED, cargo

_OPEN = "tuneloom.tuners.kernel.opening:open_kernel"
_INSIGHT = "tuneloom.tuners.kernel.searching:insight"

_OPENING_S = 600.0  # computing a reference may take long, but not for ever


class KernelJob(TuningJob):
    """The program of one kernel; nothing is compiled at its end, but what was learned is told."""

    def __init__(self, context: JobContext, memory: KernelMemory | None = None) -> None:
        self.spare = int(context.spec.extra.get("spare", "0"))
        lanes = context.lanes if context.lanes == 1 else 1 + context.workers
        small = replace(context.spec, batch=1 + self.spare)
        super().__init__(replace(context, spec=small, lanes=lanes))
        self._memory = memory or KernelMemory(context.store, context.job)
        self._began_s = 0.0
        self.presampling_s = 0.0
        self.insight: dict[str, Any] = {}

    def begin(self, at_s: float) -> Sequence[Step]:
        self._began_s = at_s
        return super().begin(at_s)

    def open_call(self) -> Call:
        return Call(function=_OPEN, arguments=(self.recipe,), worker=self.model_worker, timeout_s=_OPENING_S)

    def cannot_open(self, reason: str) -> TuneloomError:
        return TuneloomError(f"{self.spec.name}: its reference can't be computed: {reason}")

    def take_known(self, summary: ModelSummary) -> dict[str, list[Trial]]:
        """Keep no functions in the store; refuse trials of a kernel that was changed since."""
        bare = replace(summary, tasks=tuple(replace(task, payload=b"") for task in summary.tasks))
        known = super().take_known(bare)
        if set(known) - {task.key for task in summary.tasks}:
            self.failure = InputError(
                f"{self.spec.model} was changed after this run began, so its trials are no longer valid; "
                "start a new run"
            )
        return known

    def prepare(self, tasks: Sequence[TaskProgress], at_s: float) -> Sequence[Step]:
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
        if samples:
            extra = {**self.spec.extra, PRESAMPLED: samples_text(samples)}
            self.spec = replace(self.spec, extra=extra)
        steps = self.begin_tuning(tasks, at_s)
        assert self.tuning is not None
        self.tuning.spending.started_s = self._began_s
        return steps

    def make_tuning(self, tasks: Sequence[TaskProgress]) -> KernelTuning:
        assert self.summary is not None
        on_device = bool(self.summary.facts.get(ON_DEVICE))
        tuning = self.spender(KernelTuning, tasks, spare=self.spare, builds_on_device=on_device)
        for features, seconds in self._memory.features():
            tuning.teach(features, seconds)
        return tuning

    def begin_finish(self) -> Sequence[Step]:
        assert self.tuning is not None
        progress = self.tuning.tasks[0]
        if not progress.measured:
            self.failure = nothing_worked(self.spec.name, progress)
            return []
        return [self._look_step(progress)]

    def result(self) -> dict[str, Any]:
        result = super().result()
        if not isinstance(self.tuning, KernelTuning):
            return result
        progress = self.tuning.tasks[0]
        result |= {"built_only": self.tuning.built_only, "presampling_s": self.presampling_s}
        if progress.best:
            best = progress.best[0]
            result["best"] = json.loads(best.trial.candidate.configuration)
            result["best_s"] = best.seconds
            result["kernels"] = {progress.task.key: {"before_s": None, "after_s": best.seconds, "note": ""}}
        return result | ({"validity": self.insight} if self.insight else {})

    def _look_step(self, progress: TaskProgress) -> Step:
        spec = self.spec
        options = SearchOptions(seed=spec.seed, trials=spec.budget.trials, batch=1, extra=dict(spec.extra))
        call = Call(
            function=_INSIGHT,
            arguments=(cargo.for_search(progress.task), options, list(progress.trials)),
            worker=self.model_worker,
            timeout_s=SEARCH_S,
        )
        own: dict[str, Any] = {"task": progress.task.name, "home": self.model_worker, "then": None}
        return single_step(self.job, "look", lambda: call, self._seen, kind=StageKind.FINALISE, **own)

    def _seen(self, result: CallResult, _at_s: float) -> Sequence[Step]:
        self.insight = result.value if isinstance(result, Returned) else {}
        self.finished = True
        return []
