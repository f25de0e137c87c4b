"""A model's way through the program: imported, tuned, finished."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from tuneloom.app.conducting.programs import Step
from tuneloom.app.finishing.ahead import UntunedModel
from tuneloom.app.finishing.choices import Choices
from tuneloom.app.finishing.contests import FinishingSteps
from tuneloom.app.finishing.finish import Finish
from tuneloom.app.kinds.base import JobContext
from tuneloom.app.kinds.model.preparing import PreparedModel, moves_are_known
from tuneloom.app.kinds.model.results import (
    BundleParts,
    check_result,
    complete,
    foreign_parts,
    kernel_results,
    rejected_handovers,
    sizes_result,
)
from tuneloom.app.kinds.tuning_job import nothing_measured
from tuneloom.app.reuse.donors import CLEARLY
from tuneloom.app.reuse.job_reuse import follow
from tuneloom.app.tasks.limits import built_s, check_s, compile_s, untuned_s
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.task_tuning import TaskTuning
from tuneloom.backends.resolving import backend_of_text, json_config
from tuneloom.compiler.target import TargetSpec
from tuneloom.engine.calls import CallResult
from tuneloom.errors import OutputError, TuneloomError
from tuneloom.model import Trial
from tuneloom.model.space import TVM
from tuneloom.scheduling.stages import SlotDemand

_NO_TRIALS = "no trials were made: kernels run with the best that is known of them, or with a first guess"
_SMALL_PART = 0.05
_MOST_ROUNDS = 3  # a model is compiled at the end of each


class ModelJob(PreparedModel):
    """The program of one model: its kernels are tuned, compiled into it, checked and exported."""

    def __init__(self, context: JobContext) -> None:
        super().__init__(context)
        self.finish: Finish | None = None
        self._untuned: UntunedModel | None = None
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

    def worker_lost(self, worker: str) -> None:
        super().worker_lost(worker)
        if self.finish is not None:
            self.finish.worker_lost(worker)

    def _only_build(self, tasks: Sequence[TaskProgress]) -> Sequence[Step]:
        """Go to the end with what the bank knows."""
        assert self.summary is not None
        if not moves_are_known(self.spec):
            self._moved = f"how far {self.spec.dtype} moves the outputs was not measured"
        self.tuning = self.spender(TaskTuning, tasks)
        if self._reuse is not None:
            self._reuse.ask(self.summary.family, *self.summary.relatives)
        steps = self._end_with(tasks)
        if self.spec.measures and self.finish is not None:
            self.finish.notes.append(_NO_TRIALS)
        return steps

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
        """Compile and run the untuned model once tuning is under way, then compile kernels without a trial.

        Builds have to be through, so that they tell how long compiling takes. A budget of seconds is for
        tuning: what takes more than a small part of it waits for the end.
        """
        if self.tuning is None or self.done or self.finishing:
            return []
        tasks, seconds = self.tuning.tasks, self.spec.budget.seconds
        if not self.tuning.batches_done and (seconds is not None or not built_s(tasks)):
            return []
        if seconds is not None and built_s(tasks) > _SMALL_PART * seconds:
            return []
        if self._untuned is not None:
            unmeasured = [each.task.key for each in tasks if not each.trials]
            return self._closing(self._untuned.guess_kernels(unmeasured, compile_s(tasks)))
        self._untuned = self._untuned_model()
        if seconds is not None and untuned_s(tasks) > _SMALL_PART * seconds:
            self._untuned.seed = None
        # Nothing waits for it yet, so it borrows no cores from measuring. The end of the job may, later.
        limit_s = compile_s(tasks) + check_s(tasks)
        return self._closing(self._untuned.begin(SlotDemand(), built_s(tasks), limit_s))

    def _untuned_model(self) -> UntunedModel:
        steps = FinishingSteps(self.job, home=self.model_worker)
        return UntunedModel(steps, self.recipe, self.spec.seed)

    def begin_finish(self) -> Sequence[Step]:
        assert self.tuning is not None
        tasks = self.tuning.tasks
        if not any(t.measured for t in tasks):
            self.failure = nothing_measured(self.spec, tasks)
            return []
        return self._end_with(tasks)

    def _end_with(self, tasks: Sequence[TaskProgress]) -> Sequence[Step]:
        """The end of the job, in the worker that has opened the model."""
        self._untuned = self._untuned or self._untuned_model()
        known = self._known(tasks)
        same = frozenset() if self._reuse is None else self._reuse.same_kernels(known)
        self.finish = Finish(
            self.job, self.spec, self.recipe, tasks, self.export_to, Choices(self.spec.target, known, same),
            untuned=self._untuned, is_only_job=self._context.is_only_job,
        )  # fmt: skip
        return self._closing(self.finish.begin())

    def _known(self, tasks: Sequence[TaskProgress]) -> dict[str, Trial]:
        """The best of earlier jobs, for kernels of which no trial of this one was clearly faster."""
        if self._reuse is None:
            return {}
        makers = self._makers() if self.spec.self_contained else None
        found = ((t, self._reuse.best_known(t.task, makers)) for t in tasks)
        return {t.task.key: known for t, known in found if known is not None and _may_be_faster(known, t)}

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
            told = [*self.summary.notes, *filter(None, (self._moved, self._layout_note)), *finished]
            notes: dict[str, Any] = {"notes": told} if told else {}
            notes |= {} if self._layout is None else {"layout": asdict(self._layout)}
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
        """Note what the gifts of other tasks were worth, and which schedules won side by side."""
        if self._reuse is None or self.tuning is None or self.finish is None:
            return
        chosen = {key: verdict.chosen for key, verdict in self.finish.choices.verdicts.items()}
        used = {key: c.trial.candidate.key for key, c in chosen.items() if c is not None}
        self._reuse.settle(self.tuning.tasks, used)
        met = {key: verdict.contest for key, verdict in self.finish.choices.verdicts.items()}
        self._reuse.keep_contests({k: [(s, c.trial) for s, c in each] for k, each in met.items() if each})

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


def _may_be_faster(known: Trial, progress: TaskProgress) -> bool:
    return not progress.best or (known.seconds or inf) < CLEARLY * progress.best[0].seconds
