"""What all tuning jobs have in common: opened in a worker, tuned over lanes, then finished."""

from collections.abc import Sequence
from typing import Any, TypeVar

from tuneloom.app.bundles.folders import lowered_folder
from tuneloom.app.conducting.programs import Step, single_step
from tuneloom.app.kinds.base import JobContext, JobProgress
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.task_tuning import TaskTuning
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.errors import NothingMeasured, TuneloomError, in_short
from tuneloom.model import JobSpec, ModelRecipe, ModelSummary, Trial
from tuneloom.scheduling.stages import JobTicket

Tuning = TypeVar("Tuning", bound=TaskTuning)


class TuningJob:
    """The program of one job; kinds say how it opens and how it finishes.

    `failure` is the error that ended it, if one did. Used by one thread.
    """

    def __init__(self, context: JobContext) -> None:
        spec = context.spec
        self.job = context.job
        self.spec = spec
        share = context.share
        self.ticket = JobTicket(
            id=context.job,
            priority=spec.priority,
            weight=share.weight if share is not None else 1.0,
            share=share.tenant if share is not None else "",
            deadline_s=spec.deadline_s,
            device_keys=frozenset({spec.device_key} if spec.measures else ()),
            waits_for_devices=spec.waits_for_devices,
        )
        self._context = context
        self.summary: ModelSummary | None = None
        self.tuning: TaskTuning | None = None
        self.export_to: str | None = None
        self.failure: TuneloomError | None = None
        self.finished = False
        self._stopping = False

    @property
    def done(self) -> bool:
        return self.failure is not None or self.finished

    @property
    def recipe(self) -> ModelRecipe:
        """How a worker opens the model."""
        cores = max(1, self._context.device_cores)
        return ModelRecipe.of(self.job, self.spec, cores=cores, lowered_folder=lowered_folder())

    @property
    def model_worker(self) -> str:
        """The worker that keeps the opened model; it may have it since the job was checked."""
        return self._context.model_worker or f"{self.job}:model"

    @property
    def canary_s(self) -> Sequence[tuple[float, float]]:
        return self.tuning.canary_s if self.tuning else ()

    def begin(self, at_s: float) -> Sequence[Step]:
        return [single_step(self.job, "open", self.open_call, self._opened, home=self.model_worker)]

    def stopping(self) -> None:
        self._stopping = True
        if self.tuning is not None:
            self.tuning.stop()

    def worker_lost(self, worker: str) -> None:
        if self.tuning is not None:
            self.tuning.worker_lost(worker)

    def open_call(self) -> Call:
        """The call that opens the model and returns a ModelSummary or an InputError."""
        raise NotImplementedError

    def cannot_open(self, reason: str) -> TuneloomError:
        """The error for a worker that could not say what is wrong."""
        return TuneloomError(f"{self.spec.model} can't be opened: {reason}")

    def take_known(self, summary: ModelSummary) -> dict[str, list[Trial]]:
        """Keep the tasks; returns the trials made before."""
        return self._context.opened(summary)

    def prepare(self, tasks: Sequence[TaskProgress], at_s: float) -> Sequence[Step]:
        """What comes between opening and tuning."""
        return self.begin_tuning(tasks, at_s)

    def make_tuning(self, tasks: Sequence[TaskProgress]) -> TaskTuning:
        """What spends the budget."""
        return self.spender(TaskTuning, tasks)

    def spender(self, kind: type[Tuning], tasks: Sequence[TaskProgress], **more: Any) -> Tuning:
        """Tuning of this kind with the lanes and workers of the job."""
        context = self._context
        given = (self.job, self.spec, tasks, context.keep)
        return kind(*given, lanes=context.lanes, workers=context.workers, **more)

    def begin_finish(self) -> Sequence[Step]:
        """What follows when the budget is spent."""
        raise NotImplementedError

    def begin_tuning(self, tasks: Sequence[TaskProgress], at_s: float) -> Sequence[Step]:
        """Spend the budget on these tasks."""
        assert self.summary is not None
        self.tuning = self.make_tuning(tasks)
        if self._stopping:
            self.tuning.stop()
        return self.tuned(self.tuning.begin(at_s, self.summary.canary), at_s)

    def reconsidered(self, at_s: float) -> Sequence[Step]:
        """What else to try when tuning has come to its end; nothing means to finish."""
        return []

    def meanwhile(self) -> list[Step]:
        """Work for the end of the job that can be done while tuning is under way; asked after every step."""
        return []

    def tuned(self, steps: Sequence[Step], at_s: float) -> list[Step]:
        """Pass tuning steps through, watching for the end of tuning."""
        assert self.tuning is not None
        if not steps and not self.tuning.running:
            steps = self.reconsidered(at_s)
        if steps or self.tuning.running:
            return [self._watched(step) for step in steps]
        return list(self.begin_finish())

    def progress(self, at_s: float) -> JobProgress:
        tuning = self.tuning
        if tuning is None:
            return JobProgress()
        return JobProgress(
            kernels=tuple(t.task.name for t in tuning.tasks),
            measured=sum(t.measured > 0 for t in tuning.tasks),
            spent=tuning.spent,
            best_s=tuning.latency_s,
            failures=self.failures(),
            left_s=None if self.finishing else tuning.spending.left_s(at_s),
            outlook="" if self.finishing else tuning.spending.outlook(at_s),
        )

    @property
    def finishing(self) -> bool:
        """Whether tuning is over."""
        return self.done

    def failures(self) -> dict[str, int]:
        """How many trials failed, by kind."""
        counts: dict[str, int] = {}
        for progress in self.tuning.tasks if self.tuning else ():
            for kind, count in progress.failures.items():
                counts[kind.value] = counts.get(kind.value, 0) + count
        return counts

    def result(self) -> dict[str, Any]:
        if self.tuning is None:
            return {"kernels": {}}
        canary_s = [seconds for _, seconds in self.tuning.canary_s]
        return {
            "kernels": {},
            "trials": self.tuning.spent,
            "failures": self.failures(),
            "canary_s": canary_s,
        }

    def settle(self) -> None:
        return

    def complete(self, run: str) -> TuneloomError | None:
        return None

    def _opened(self, result: CallResult, at_s: float) -> Sequence[Step]:
        if not isinstance(result, Returned):
            self.failure = self.cannot_open(str(result))
            return []
        if isinstance(result.value, TuneloomError):
            self.failure = result.value
            return []
        summary: ModelSummary = result.value
        self.summary = summary
        known = self.take_known(summary)
        return [] if self.failure else self.prepare(_progress(summary, known), at_s)

    def _watched(self, step: Step) -> Step:
        def ended(result: CallResult, at_s: float) -> Sequence[Step] | None:
            following = step.ended(result, at_s)
            return None if following is None else self.tuned(following, at_s) + self.meanwhile()

        return step.leading_to(ended)


def _progress(summary: ModelSummary, known: dict[str, list[Trial]]) -> list[TaskProgress]:
    tasks = [TaskProgress(index, task) for index, task in enumerate(summary.tasks)]
    for progress in tasks:
        for trial in known.get(progress.task.key, ()):
            progress.add(trial, None)
            progress.batches = 1
    return tasks


def nothing_measured(spec: JobSpec, tasks: Sequence[TaskProgress]) -> TuneloomError:
    """The error for a job of which no trial could be measured."""
    barren = [t for t in tasks if t.trials or t.first_error]
    if not barren:
        return NothingMeasured(f"{spec.name}: no trial was made; give it more time or trials")
    first = barren[0]
    why = in_short(first.first_error.partition("\n")[0]) or "no reason was given"
    return NothingMeasured(
        f"{spec.name}: none of {len(first.trials)} trials of {first.task.name} succeeded; "
        f"the first failed with: {why}"
    )
