"""The steps between a model's import and its first trial: spaces described, foreign schedules fitted."""

from collections.abc import Callable, Mapping, Sequence

from tuneloom.app.conducting.programs import Step, single_step
from tuneloom.app.reuse.job_reuse import JobReuse
from tuneloom.app.tasks.limits import describe_s
from tuneloom.engine.calls import Call, CallResult, Returned
from tuneloom.model import ModelSummary, Task, TaskSpace
from tuneloom.transfer import Donor

DESCRIBE = "tuneloom.tuners.tvm.search.spaces:describe"
FIT = "tuneloom.transfer.traces:fit_traces"
_FIT_S = 60.0
_PER_TASK = 2

Ready = Callable[[float], Sequence[Step]]
"""What follows when all is prepared."""


def fits_wanted(
    tasks: Sequence[Task], foreign: Mapping[str, Sequence[Donor]]
) -> tuple[list[tuple[str, Donor]], list[tuple[bytes, str]]]:
    """Pairs of a task's key and a donor, and for each what the fitting function takes."""
    by_key = {task.key: task for task in tasks}
    pairs = [(key, donor) for key, donors in foreign.items() for donor in donors[:_PER_TASK]]
    return pairs, [(by_key[key].payload, donor.trace) for key, donor in pairs]


class Preparation:
    """Prepares the reuse of one job; whatever fails here costs gifts, never the job."""

    def __init__(
        self, job: str, model_worker: str, reuse: JobReuse, summary: ModelSummary, ready: Ready
    ) -> None:
        self._job = job
        self._model_worker = model_worker
        self._reuse = reuse
        self._summary = summary
        self._tasks = summary.tasks
        self._ready = ready

    def begin(self) -> list[Step]:
        """Describe the spaces of all tasks."""
        limit_s = describe_s(len(self._tasks))
        call = Call(
            function=DESCRIBE, arguments=(list(self._tasks),), worker=self._model_worker, timeout_s=limit_s
        )
        return [self._step(0, "describe", call, self._described)]

    def _described(self, result: CallResult, at_s: float) -> Sequence[Step]:
        unknown = [TaskSpace(task_key=task.key, sketches=()) for task in self._tasks]
        spaces = result.value if isinstance(result, Returned) else unknown
        families = (self._summary.family, *self._summary.relatives)
        foreign = self._reuse.look(families, self._tasks, spaces)
        return [self._fit_step(foreign)] if foreign else self._ready(at_s)

    def _fit_step(self, foreign: Mapping[str, Sequence[Donor]]) -> Step:
        pairs, wanted = fits_wanted(self._tasks, foreign)
        call = Call(function=FIT, arguments=(wanted,), worker=self._model_worker, timeout_s=_FIT_S)

        def fitted(result: CallResult, at_s: float) -> Sequence[Step]:
            if isinstance(result, Returned):
                for (key, donor), texts in zip(pairs, result.value, strict=True):
                    self._reuse.take_foreign(key, donor, texts)
            return self._ready(at_s)

        return self._step(1, "fit", call, fitted)

    def _step(
        self, step: int, name: str, call: Call, ended: Callable[[CallResult, float], Sequence[Step]]
    ) -> Step:
        home = self._model_worker
        return single_step(self._job, name, lambda: call, ended, lane="prepare", step=step, home=home)
