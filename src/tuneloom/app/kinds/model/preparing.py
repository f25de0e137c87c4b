"""A model until its kernels are tuned: opened, laid out, compared in its type, looked up in the bank."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from tuneloom.app.conducting.programs import Step, single_step
from tuneloom.app.kinds.base import JobContext
from tuneloom.app.kinds.model.references import layout_step, precision_step, reference_step
from tuneloom.app.kinds.tuning_job import TuningJob
from tuneloom.app.reuse.job_reuse import JobReuse
from tuneloom.app.reuse.steps import Preparation
from tuneloom.app.tasks.limits import OPEN_S
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.backends.base import USUAL
from tuneloom.backends.resolving import backend_of_text
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.errors import TuneloomError, in_short
from tuneloom.model import JobSpec, LayoutChoice, ModelRecipe, ModelSummary

_WORTH_CHOOSING_S = 60.0
"""For how much tuning the layout is chosen by times, which takes some seconds."""

_NEEDS_NO_RUN = ("float32", "int8", "tf32_convolutions")


def moves_are_known(spec: JobSpec) -> bool:
    """Whether it is known once a model is opened how far its number type moves the outputs.

    Whole numbers are the same on every device. Convolutions in TF32 are what PyTorch computes with by
    default; the check at the end is enough for them. Other types have to be run on their own.
    """
    return spec.dtype in _NEEDS_NO_RUN or backend_of_text(spec.target).on_host


class PreparedModel(TuningJob, ABC):
    """The first steps of a model's job, each of which leads to the next; some jobs need none of them."""

    def __init__(self, context: JobContext) -> None:
        super().__init__(context)
        tenant = context.share.tenant if context.share is not None else None
        reuse = JobReuse(context.store, context.job, context.spec, tenant)
        self._reuse = reuse if reuse.wanted else None
        self._reference_s: float | None = None
        self._moved = ""
        self._layout: LayoutChoice | None = None
        self._layout_note = self._other_layout = ""

    @abstractmethod
    def _only_build(self, tasks: Sequence[TaskProgress]) -> Sequence[Step]:
        """Go to the end with what the bank knows."""

    @property
    def recipe(self) -> ModelRecipe:
        """How a worker opens the model; once it was, in the layout and sizes that were chosen then."""
        sizes = self.summary.sizes if self.summary is not None else None
        own = super().recipe
        own = replace(own, layout=self._other_layout or own.layout)
        return own if sizes is None else own.at(sizes.programs)

    def open_call(self) -> Call:
        return Call(
            function="tuneloom.tuners.tvm.models.opening:open_model",
            arguments=(self.recipe,),
            worker=self.model_worker,
            timeout_s=OPEN_S,
        )

    def cannot_open(self, reason: str) -> TuneloomError:
        return TuneloomError(f"{self.spec.model} can't be imported: {in_short(reason)}")

    def _opened(self, result: CallResult, at_s: float) -> Sequence[Step]:
        """Go on, or first find out which layout the whole model is fastest in."""
        following = super()._opened
        summary = result.value if isinstance(result, Returned) else None
        free = self.spec.layout == USUAL and not self.spec.ranges
        if not isinstance(summary, ModelSummary) or not summary.layouts or not free:
            return following(result, at_s)

        def chosen(found: LayoutChoice | TuneloomError, later_s: float) -> Sequence[Step]:
            self._layout_note = str(found)
            if isinstance(found, TuneloomError):
                return following(result, later_s)
            self._layout = found
            if found.layout == summary.layouts[0]:
                return following(result, later_s)
            self._other_layout = found.layout
            return [single_step(self.job, "open again", self.open_call, following, home=self.model_worker)]

        if summary.chosen is not None:
            return chosen(summary.chosen, at_s)
        if not self._has_time_to_choose(len(summary.tasks)):
            return following(result, at_s)
        return [layout_step(self.job, self.spec, self.recipe, self.model_worker, chosen)]

    def _has_time_to_choose(self, kernels: int) -> bool:
        """Who has few trials or seconds wants an answer at once."""
        budget = self.spec.budget
        enough = budget.trials >= kernels and (budget.seconds or inf) >= _WORTH_CHOOSING_S
        return self.spec.measures and enough

    def prepare(self, tasks: Sequence[TaskProgress], at_s: float) -> Sequence[Step]:
        """Find out first what a number type does to the outputs, unless that was told when it was opened."""
        if not self.spec.measures or not self.spec.budget.trials:
            return self._only_build(tasks)
        if moves_are_known(self.spec):
            return self._compare(tasks, at_s)

        def moved(found: str | TuneloomError, later_s: float) -> Sequence[Step]:
            if isinstance(found, TuneloomError):
                self.failure = found
                return []
            self._moved = found
            return self._compare(tasks, later_s)

        return [precision_step(self.job, self.spec, self.recipe, self.model_worker, moved)]

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
