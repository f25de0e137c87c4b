"""A tuning job without a model: mock tasks go through the very lanes that real ones go through."""

from collections.abc import Sequence
from dataclasses import replace

from tuneloom.app.conducting.programs import Step
from tuneloom.app.finishing.finish import Finish
from tuneloom.app.finishing.verdicts import Verdict
from tuneloom.app.kinds.model.job import ModelJob
from tuneloom.app.tasks.limits import OPEN_S
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.engine.calls import Call
from tuneloom.tuners.tvm.models.stages import CheckResult

_OPEN = "tuneloom.tuners.mock.opening:open_mock"


class MockModelJob(ModelJob):
    """Opened, tuned and finished like any other, but nothing is imported or compiled.

    Its latency is the weighted sum of its kernels' times. It writes no bundle.
    """

    def begin(self, at_s: float) -> Sequence[Step]:
        call = Call(function=_OPEN, arguments=(self.recipe,), worker=f"{self.job}:model", timeout_s=OPEN_S)
        return [replace(step, call=lambda: call) for step in super().begin(at_s)]

    def _meanwhile(self) -> list[Step]:
        return []

    def _begin_finish(self) -> Sequence[Step]:
        following = super()._begin_finish()
        if self.finish is not None:
            _conclude(self.finish)
            return []
        return following


def _conclude(finish: Finish) -> None:
    """Take the best trial of every task for the final measurement."""
    finish.verdicts = {progress.task.key: _verdict(progress) for progress in finish.tasks}
    finish.check = CheckResult(
        difference=0.0,
        tuned_s=(sum(t.task.weight * (t.best_s or 0.0) for t in finish.tasks),),
        untuned_s=(sum(t.task.weight * (_untuned_s(t) or 0.0) for t in finish.tasks),),
    )
    finish.finished = True


def _verdict(progress: TaskProgress) -> Verdict:
    best, untuned_s = (progress.best[0] if progress.best else None), _untuned_s(progress)
    if best is not None and untuned_s is not None and best.seconds >= untuned_s:
        return Verdict(default_s=untuned_s, tuned_s=best.seconds, note="not faster than the default schedule")
    return Verdict(chosen=best, default_s=untuned_s, tuned_s=best.seconds if best else None)


def _untuned_s(progress: TaskProgress) -> float | None:
    return progress.default.seconds if progress.default else progress.best_s
