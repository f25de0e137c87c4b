"""A model's way through the program: imported, tuned, finished."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from tuneloom.app.conducting.programs import Step
from tuneloom.app.finishing.contests import FinishingSteps, UntunedModel
from tuneloom.app.finishing.finish import Finish
from tuneloom.app.kinds.base import JobContext
from tuneloom.app.kinds.model.references import precision_step, reference_step
from tuneloom.app.kinds.model.results import (
    BundleParts,
    check_result,
    complete,
    foreign_parts,
    kernel_results,
    rejected_handovers,
    sizes_result,
)
from tuneloom.app.kinds.tuning_job import TuningJob, nothing_measured
from tuneloom.app.reuse.job_reuse import JobReuse, follow
from tuneloom.app.reuse.steps import Preparation
from tuneloom.app.tasks.limits import OPEN_S, built_s, compile_s
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.task_tuning import TaskTuning
from tuneloom.backends.resolving import backend_of_text, json_config
from tuneloom.compiler.target import TargetSpec
from tuneloom.engine.calls import Call, CallResult
from tuneloom.errors import OutputError, TuneloomError, in_short
from tuneloom.model import ModelRecipe, TaskSpace, Trial
from tuneloom.model.space import TVM
from tuneloom.scheduling.stages import SlotDemand

_NO_TRIALS = "no trials were made: kernels run with the best that is known of them, or with a first guess"
_SMALL_PART = 0.05
_MOST_ROUNDS = 3  # a model is compiled at the end of each


class ModelJob(TuningJob):
    """The program of one model: its kernels are tuned, compiled into it, checked and exported."""

    def __init__(self, context: JobContext) -> None:
        super().__init__(context)
        tenant = context.share.tenant if context.share is not None else None
        reuse = JobReuse(context.store, context.job, context.spec, tenant)
        self._reuse = reuse if reuse.wanted else None
        self.finish: Finish | None = None
        self._untuned: UntunedModel | None = None
        self._reference_s: float | None = None
        self._moved = ""
        self._known_suffices = False
        self._rounds = 0

    @property
    def done(self) -> bool:
        if self._untuned is not None and self._untuned.running:
            return False
        return self.failure is not None or (self.finish is not None and self.finish.finished)

    @property
    def finishing(self) -> bool:
        return self.finish is not None

    @property
    def recipe(self) -> ModelRecipe:
        """How a worker opens the model; once it was, under the sizes that were chosen then."""
        sizes = self.summary.sizes if self.summary is not None else None
        return super().recipe if sizes is None else super().recipe.at(sizes.programs)

    def open_call(self) -> Call:
        return Call(
            function="tuneloom.tuners.tvm.models.opening:open_model",
            arguments=(self.recipe,),
            worker=self.model_worker,
            timeout_s=OPEN_S,
        )

    def worker_lost(self, worker: str) -> None:
        super().worker_lost(worker)
        if self.finish is not None:
            self.finish.worker_lost(worker)

    def cannot_open(self, reason: str) -> TuneloomError:
        return TuneloomError(f"{self.spec.model} can't be imported: {in_short(reason)}")

    def prepare(self, tasks: Sequence[TaskProgress], at_s: float) -> Sequence[Step]:
        """Find out first what a number type does to the outputs, unless that was told when it was opened."""
        if not self.spec.measures or not self.spec.budget.trials:
            return self._only_build(tasks)
        on_host = backend_of_text(self.spec.target).on_host
        if self.spec.dtype == "float32" or on_host:
            return self._compare(tasks, at_s)

        def moved(found: str | TuneloomError, later_s: float) -> Sequence[Step]:
            if isinstance(found, TuneloomError):
                self.failure = found
                return []
            self._moved = found
            return self._compare(tasks, later_s)

        return [precision_step(self.job, self.spec, self.recipe, self.model_worker, moved)]

    def _only_build(self, tasks: Sequence[TaskProgress]) -> Sequence[Step]:
        """Go to the end with what the bank knows."""
        assert self.summary is not None
        if self.spec.dtype != "float32" and not backend_of_text(self.spec.target).on_host:
            self._moved = f"how far {self.spec.dtype} moves the outputs was not measured"
        self.tuning = self.spender(TaskTuning, tasks)
        if self._reuse is not None:
            families = (self.summary.family, *self.summary.relatives)
            spaces = [TaskSpace(task_key=task.key, sketches=()) for task in self.summary.tasks]
            self._reuse.look(families, self.summary.tasks, spaces)
        steps = self._end_with(tasks)
        if self.spec.measures and self.finish is not None:
            self.finish.notes.append(_NO_TRIALS)
        return steps

    def _compare(self, tasks: Sequence[TaskProgress], at_s: float) -> Sequence[Step]:
        if self.spec.budget.goal_ratio is None:
            return self._look_for_donors(tasks, at_s)
        assert self.summary is not None

        def timed(found: float | TuneloomError, later_s: float) -> Sequence[Step]:
            if isinstance(found, TuneloomError):
                self.failure = found
                return []
            self._reference_s = found
            return self._look_for_donors(tasks, later_s)

        return [reference_step(self.job, self.spec, self.summary, self._context.device_cores, timed)]

    def _look_for_donors(self, tasks: Sequence[TaskProgress], at_s: float) -> Sequence[Step]:
        if self._reuse is None:
            return self.begin_tuning(tasks, at_s)
        assert self.summary is not None
        preparation = Preparation(
            self.job,
            self.model_worker,
            self._reuse,
            self.summary,
            lambda later_s: self.begin_tuning(tasks, later_s),
        )
        return preparation.begin()

    def make_tuning(self, tasks: Sequence[TaskProgress]) -> TaskTuning:
        tuning = self.spender(TaskTuning, tasks, reuse=self._reuse)
        tuning.spending.goal.reference_s = self._reference_s
        if self._reuse is not None:
            assert self.summary is not None
            known_s = self._reuse.known_s(self.summary.tasks)
            self._known_suffices = tuning.spending.goal.met_by(known_s)
            self._follow_plan(tuning)
        return tuning

    def _follow_plan(self, tuning: TaskTuning) -> None:
        assert self.summary is not None and self._reuse is not None
        plan = self._reuse.plan(self.summary.tasks, known_suffices=self._known_suffices)
        follow(plan, tuning.tasks)
        tuning.spending.most_trials = plan.trials

    def reconsidered(self, at_s: float) -> Sequence[Step]:
        """Search after all, if what is known does not meet the goal when it is measured again."""
        tuning = self.tuning
        if tuning is None or not self._known_suffices or tuning.spending.goal.met_by(tuning.latency_s):
            return []
        self._known_suffices = False
        self._follow_plan(tuning)
        return tuning.go_on(at_s)

    def meanwhile(self) -> list[Step]:
        """Compile the untuned model once tuning is under way.

        A batch has to be through, so that builds tell how long compiling takes. A budget of
        seconds is for tuning: what takes more than a small part of it waits for the end.
        """
        if self._untuned is not None or self.tuning is None or not self.tuning.batches_done:
            return []
        tasks, seconds = self.tuning.tasks, self.spec.budget.seconds
        if self.done or (seconds is not None and built_s(tasks) > _SMALL_PART * seconds):
            return []
        self._untuned = self._untuned_model()
        # Nothing waits for it yet, so it borrows no cores from measuring. The end of the job may, later.
        return self._closing(self._untuned.begin(SlotDemand(), built_s(tasks), compile_s(tasks)))

    def _untuned_model(self) -> UntunedModel:
        return UntunedModel(FinishingSteps(self.job, home=self.model_worker), self.recipe)

    def begin_finish(self) -> Sequence[Step]:
        assert self.tuning is not None
        tasks = self.tuning.tasks
        if not any(t.measured for t in tasks):
            self.failure = nothing_measured(self.spec, tasks)
            return []
        self._untuned = self._untuned or self._untuned_model()
        return self._end_with(tasks)

    def _end_with(self, tasks: Sequence[TaskProgress]) -> Sequence[Step]:
        known = self._known(tasks)
        self.finish = Finish(
            self.job, self.spec, self.recipe, tasks, self.export_to, untuned=self._untuned,
            known=known, same=frozenset() if self._reuse is None else self._reuse.same_kernels(known),
        )  # fmt: skip
        return self._closing(self.finish.begin())

    def _known(self, tasks: Sequence[TaskProgress]) -> dict[str, Trial]:
        """The best of earlier jobs, for kernels of which no trial of this one was faster."""
        if self._reuse is None:
            return {}
        makers = self._makers() if self.spec.self_contained else None
        found = ((t, self._reuse.best_known(t.task, makers)) for t in tasks)
        return {t.task.key: known for t, known in found if known is not None and _is_faster(known, t)}

    def _makers(self) -> set[str]:
        """Whose code runs without further libraries."""
        assert self.summary is not None
        config = json_config(self.summary.target)
        target = TargetSpec(kind=config["kind"], config=config)
        known = backend_of_text(self.summary.target).implementers(target)
        return {TVM, *(one.name for one in known if not one.requirements)}

    def _closing(self, steps: Sequence[Step]) -> list[Step]:
        """The last steps, watching for a model that as a whole misses the goal its kernels met."""

        def watched(step: Step) -> Step:
            def ended(result: CallResult, at_s: float) -> Sequence[Step] | None:
                following = step.ended(result, at_s)
                if following or following is None or self.finish is None or not self.finish.finished:
                    return None if following is None else self._closing(following)
                return self._another_round(at_s)

            return replace(step, ended=ended)

        return [watched(step) for step in steps]

    def _another_round(self, at_s: float) -> Sequence[Step]:
        """Go on tuning if the goal is missed and something is left to spend; now it is known by how much."""
        tuning, finish = self.tuning, self.finish
        assert tuning is not None and finish is not None
        if finish.failure or finish.unwritten or finish.check is None or self._rounds >= _MOST_ROUNDS:
            return []
        model_s, goal = median(finish.check.tuned_s), tuning.spending.goal
        if not goal.missed_by(model_s) or not goal.met_by(tuning.latency_s):
            return []
        goal.calibrate(model_s, tuning.latency_s)
        self._rounds += 1
        steps = self.reconsidered(at_s) or tuning.go_on(at_s)
        if not steps:
            return []
        self.finish = None
        return self.tuned(steps, at_s)

    def result(self) -> dict[str, Any]:
        result = super().result()
        if self.summary is not None:
            check = self.finish.check if self.finish is not None else None
            handover = self.finish.handover if self.finish is not None else None
            finished = self.finish.notes if self.finish is not None else ()
            told = [*self.summary.notes, *filter(None, (self._moved,)), *finished]
            notes = {"notes": told} if told else {}
            parts = foreign_parts(self.summary, check, handover)
            result |= notes | ({"onnxruntime": parts} if parts else {})
        if self.tuning is None or self.finish is None:
            return result
        checked = check_result(self.finish.check, self.finish.handover)
        checked |= rejected_handovers(self.finish.rejected)
        checked |= sizes_result(self.summary.sizes if self.summary is not None else None)
        goal = self.tuning.spending.goal.result(checked.get("latency_after_s"))
        return result | {"kernels": kernel_results(self.tuning, self.finish)} | checked | goal

    def settle(self) -> None:
        """Note what the gifts of other tasks were worth."""
        if self._reuse is None or self.tuning is None or self.finish is None:
            return
        chosen = {key: verdict.chosen for key, verdict in self.finish.verdicts.items()}
        used = {key: c.trial.candidate.key for key, c in chosen.items() if c is not None}
        self._reuse.settle(self.tuning.tasks, used)

    def complete(self, run: str) -> TuneloomError | None:
        if self.finish is not None and self.finish.failure:
            return TuneloomError(f"{self.spec.name}: {self.finish.failure}")
        if self.finish is not None and self.finish.unwritten is not None:
            return self.finish.unwritten
        if self.spec.out is None:
            return None
        assert self.summary is not None and self.tuning is not None and self.finish is not None
        made = BundleParts(
            run=run,
            spec=self.spec,
            summary=self.summary,
            result=self.result(),
            tuning=self.tuning,
            finish=self.finish,
            device_cores=self._context.device_cores,
        )
        try:
            complete(Path(self.spec.out), made)
        except OutputError as error:
            return error
        return None


def _is_faster(known: Trial, progress: TaskProgress) -> bool:
    return not progress.best or (known.seconds or inf) < progress.best[0].seconds
