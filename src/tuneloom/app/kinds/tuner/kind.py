"""Jobs of tuners that bring tasks and no model: the best trial of each task is the result."""

from collections.abc import Sequence
from typing import Any

from tuneloom.app.conducting.programs import Step
from tuneloom.app.finishing.verdicts import Verdict
from tuneloom.app.kinds.base import JobKind
from tuneloom.app.kinds.tuning_job import TuningJob, nothing_measured
from tuneloom.app.tasks.limits import OPEN_S
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.engine.calls import Call
from tuneloom.errors import InputError
from tuneloom.model import JobSpec

OPEN = "tuneloom.tuners.opening:open_tasks"


class TaskListJob(TuningJob):
    """Opened and tuned like any other, but nothing is compiled at the end.

    Its latency is the weighted sum of its tasks' times. It writes no bundle.
    """

    def open_call(self) -> Call:
        arguments = (self.spec.tuner, self.recipe)
        return Call(function=OPEN, arguments=arguments, worker=self.model_worker, timeout_s=OPEN_S)

    def begin_finish(self) -> Sequence[Step]:
        assert self.tuning is not None
        tasks = self.tuning.tasks
        if not any(t.measured for t in tasks):
            self.failure = nothing_measured(self.spec, tasks)
        self.finished = True
        return []

    def result(self) -> dict[str, Any]:
        result = super().result()
        if not self.finished or self.tuning is None or self.failure is not None:
            return result
        measured = [t for t in self.tuning.tasks if t.measured]
        before_s = sum(t.task.weight * (_untuned_s(t) or 0.0) for t in measured)
        after_s = sum(t.task.weight * (t.best_s or 0.0) for t in measured)
        return result | {
            "kernels": {t.task.key: _kernel(t) for t in self.tuning.tasks},
            "latency_before_s": before_s,
            "latency_after_s": after_s,
            "latencies_before_s": [before_s],
            "latencies_after_s": [after_s],
            **self.tuning.spending.goal.result(after_s),
        }


def _kernel(progress: TaskProgress) -> dict[str, Any]:
    verdict = _verdict(progress)
    best = verdict.chosen.trial.candidate.configuration if verdict.chosen else ""
    return {**verdict.result(len(progress.trials)), "best": best}


def _verdict(progress: TaskProgress) -> Verdict:
    best, untuned_s = (progress.best[0] if progress.best else None), _untuned_s(progress)
    if best is None:
        return Verdict(default_s=untuned_s, note=progress.first_error.partition("\n")[0])
    if progress.default is not None and untuned_s is not None and best.seconds >= untuned_s:
        return Verdict(default_s=untuned_s, tuned_s=best.seconds, note="not faster than the default schedule")
    return Verdict(chosen=best, default_s=untuned_s, tuned_s=best.seconds)


def _untuned_s(progress: TaskProgress) -> float | None:
    return progress.default.seconds if progress.default else progress.best_s


REFUSAL = "tuneloom.tuners.opening:refusal"
WARM_UP = "tuneloom.tuners.warming:warm_tuners"
_OPENING_S = 600.0


def tuner_kind(name: str) -> JobKind:
    """Jobs whose tasks the tuner itself names; a bad model is refused by the tuner, in a worker."""
    return JobKind(
        name=name,
        program=TaskListJob,
        check=require_no_bundle,
        refusal=_refusal,
        warm_up=f"{WARM_UP}",
        named=lambda model: name if model.startswith(f"{name}:") else model.rpartition("/")[2],
    )


def require_no_bundle(spec: JobSpec) -> None:
    """Raise InputError for a job that asks for a bundle it can't have."""
    if spec.out is not None:
        raise InputError(f"{spec.name}: a {spec.tuner} job writes no bundle; omit --out", field="out")


def _refusal(spec: JobSpec) -> Call:
    return Call(function=REFUSAL, arguments=(spec.tuner, spec.model), timeout_s=_OPENING_S)
