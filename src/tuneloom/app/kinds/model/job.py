"""A model's way through the program: imported, tuned, finished."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tuneloom.app.conducting.programs import Step
from tuneloom.app.finishing.contests import FinishingSteps
from tuneloom.app.finishing.finish import MODEL_STAGES, Finish
from tuneloom.app.finishing.untuned import UntunedModel
from tuneloom.app.reuse.job_reuse import JobReuse, follow
from tuneloom.app.reuse.steps import Preparation
from tuneloom.app.tasks.limits import OPEN_S, built_s, compile_s
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.task_tuning import Keep, TaskTuning
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.errors import NothingMeasured, TuneloomError
from tuneloom.model import JobSpec, StageKind, Trial
from tuneloom.scheduling.stages import ANY_CORE, JobTicket, SlotDemand, StageRequest
from tuneloom.tuners.tvm.models.stages import ModelRecipe, ModelSummary

_SMALL_PART = 0.05

Opened = Callable[[ModelSummary], dict[str, list[Trial]]]
"""Told of a model when its tasks are known; answers with the trials known from before."""


class ModelJob:
    """The program of one tuning job. `failure` is the error that ended it, if one did."""

    def __init__(
        self,
        job: str,
        spec: JobSpec,
        *,
        opened: Opened,
        keep: Keep,
        lanes: int,
        tuners: int,
        reuse: JobReuse | None = None,
    ) -> None:
        self.job = job
        self.spec = spec
        self.ticket = JobTicket(
            id=job,
            priority=spec.priority,
            deadline_s=spec.deadline_s,
            device_keys=frozenset({spec.device_key}),
            waits_for_devices=spec.waits_for_devices,
        )
        self._opened = opened
        self._keep = keep
        self._lanes = lanes
        self._tuners = tuners
        self._reuse = reuse if reuse is not None and reuse.wanted else None
        self.summary: ModelSummary | None = None
        self.tuning: TaskTuning | None = None
        self.finish: Finish | None = None
        self.export_to: str | None = None
        self.failure: TuneloomError | None = None
        self._stopping = False
        self._untuned: UntunedModel | None = None

    @property
    def done(self) -> bool:
        if self._untuned is not None and self._untuned.running:
            return False
        return self.failure is not None or (self.finish is not None and self.finish.finished)

    @property
    def recipe(self) -> ModelRecipe:
        spec = self.spec
        return ModelRecipe(
            key=self.job, source=spec.model, shapes=spec.shapes, target=spec.target, layout=spec.layout
        )

    def begin(self, at_s: float) -> Sequence[Step]:
        call = Call(
            function=f"{MODEL_STAGES}:open_model",
            arguments=(self.recipe,),
            worker=f"{self.job}:model",
            timeout_s=OPEN_S,
        )
        request = StageRequest(
            id="open",
            job=self.job,
            lane="open",
            step=0,
            kind=StageKind.INITIALISE.value,
            needs=ANY_CORE,
            then=ANY_CORE,
            home=f"{self.job}:model",
        )
        return [Step(request=request, call=lambda: call, ended=self._model_opened)]

    def stopping(self) -> None:
        self._stopping = True
        if self.tuning is not None:
            self.tuning.stop()

    def worker_lost(self, worker: str) -> None:
        if self.tuning is not None:
            self.tuning.worker_lost(worker)
        if self.finish is not None:
            self.finish.worker_lost(worker)

    def _model_opened(self, result: CallResult, at_s: float) -> Sequence[Step]:
        if not isinstance(result, Returned):
            self.failure = TuneloomError(f"{self.spec.model} can't be imported: {result}")
            return []
        if isinstance(result.value, TuneloomError):
            self.failure = result.value
            return []
        summary: ModelSummary = result.value
        self.summary = summary
        known = self._take_known(summary)
        tasks = [TaskProgress(index, task) for index, task in enumerate(summary.tasks)]
        for progress in tasks:
            for trial in known.get(progress.task.key, ()):
                progress.add(trial, None)
                progress.batches = 1
        if self._reuse is None:
            return self._begin_tuning(tasks, at_s)
        preparation = Preparation(
            self.job,
            self._reuse,
            summary.family,
            summary.tasks,
            lambda later_s: self._begin_tuning(tasks, later_s),
        )
        return preparation.begin()

    def _take_known(self, summary: ModelSummary) -> dict[str, list[Trial]]:
        return self._opened(summary)

    def _begin_tuning(self, tasks: Sequence[TaskProgress], at_s: float) -> Sequence[Step]:
        assert self.summary is not None
        self.tuning = TaskTuning(
            self.job,
            self.spec,
            tasks,
            self._keep,
            lanes=self._lanes,
            tuners=self._tuners,
            reuse=self._reuse,
        )
        if self._reuse is not None:
            plan = self._reuse.plan(self.summary.tasks)
            follow(plan, tasks)
            self.tuning.spending.most_trials = plan.trials
        if self._stopping:
            self.tuning.stop()
        return self._tuned(self.tuning.begin(at_s, self.summary.canary))

    def settle(self) -> None:
        """Note what the gifts of other tasks were worth; for the end of the job."""
        if self._reuse is None or self.tuning is None or self.finish is None:
            return
        chosen = {key: verdict.chosen for key, verdict in self.finish.verdicts.items()}
        used = {key: c.trial.candidate.key for key, c in chosen.items() if c is not None}
        self._reuse.settle(self.tuning.tasks, used)

    def _tuned(self, steps: Sequence[Step]) -> list[Step]:
        """Pass tuning steps through, watching for the end of tuning."""
        assert self.tuning is not None
        if steps or self.tuning.running:
            return [self._watched(step) for step in steps]
        return list(self._begin_finish())

    def _meanwhile(self) -> list[Step]:
        """Work for the end of the job that can be done once tuning is under way.

        A batch has to be through, so that builds tell how long compiling takes. A budget of
        seconds is for tuning: what takes more than a small part of it waits for the end.
        """
        if self._untuned is not None or self.tuning is None or not self.tuning.batches_done:
            return []
        tasks, seconds = self.tuning.tasks, self.spec.budget.seconds
        if self.done or (seconds is not None and built_s(tasks) > _SMALL_PART * seconds):
            return []
        self._untuned = self._untuned_model()
        # Nothing waits for it yet, so it borrows no cores from measuring.
        return self._untuned.begin(SlotDemand(), built_s(tasks), compile_s(tasks))

    def _untuned_model(self) -> UntunedModel:
        return UntunedModel(FinishingSteps(self.job, home=f"{self.job}:model"), self.recipe)

    def _watched(self, step: Step) -> Step:
        def ended(result: CallResult, at_s: float) -> Sequence[Step] | None:
            following = step.ended(result, at_s)
            return None if following is None else self._tuned(following) + self._meanwhile()

        return replace(step, ended=ended)

    def _begin_finish(self) -> Sequence[Step]:
        assert self.tuning is not None
        tasks = self.tuning.tasks
        if not any(t.measured for t in tasks):
            self.failure = nothing_measured(self.spec, tasks)
            return []
        self._untuned = self._untuned or self._untuned_model()
        self.finish = Finish(self.job, self.spec, self.recipe, tasks, self.export_to, untuned=self._untuned)
        return self.finish.begin()


def nothing_measured(spec: JobSpec, tasks: Sequence[TaskProgress]) -> TuneloomError:
    """The error for a job of which no trial could be measured."""
    barren = [t for t in tasks if t.trials or t.first_error]
    if not barren:
        return NothingMeasured(f"{spec.name}: no trial was made; give it more time or trials")
    first = barren[0]
    why = first.first_error.splitlines()[0] if first.first_error else "no reason was given"
    return NothingMeasured(
        f"{spec.name}: none of {len(first.trials)} trials of {first.task.name} succeeded; "
        f"the first failed with: {why}"
    )
