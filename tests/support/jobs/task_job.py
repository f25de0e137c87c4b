"""Tuning tasks that come without a model: a program of its own, and a short way to run it."""

from collections.abc import Sequence
from dataclasses import replace

from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.conducting.listening import Listener
from tuneloom.app.conducting.programs import Step
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.task_tuning import Keep, TaskTuning
from tuneloom.engine.api import Engine
from tuneloom.engine.calls import CallResult
from tuneloom.engine.machine import Fleet
from tuneloom.model import JobSpec, Task
from tuneloom.scheduling import Core, policy_named
from tuneloom.scheduling.stages import JobTicket


class TaskJob:
    """Spends a budget on tasks; nothing is imported before, nothing compiled after."""

    def __init__(
        self, job: str, spec: JobSpec, tasks: Sequence[Task], keep: Keep, *, lanes: int, workers: int
    ) -> None:
        self.ticket = JobTicket(id=job, priority=spec.priority, device_keys=frozenset({spec.device_key}))
        progress = [TaskProgress(index, task) for index, task in enumerate(tasks)]
        self.tuning = TaskTuning(job, spec, progress, keep, lanes=lanes, workers=workers)
        self._open = 0

    @property
    def done(self) -> bool:
        return self._open == 0

    def begin(self, at_s: float) -> Sequence[Step]:
        return self._counted(self.tuning.begin(at_s, b""))

    def stopping(self) -> None:
        self.tuning.stop()

    def worker_lost(self, worker: str) -> None:
        self.tuning.worker_lost(worker)

    def _counted(self, steps: Sequence[Step]) -> list[Step]:
        self._open += len(steps)
        return [self._watched(step) for step in steps]

    def _watched(self, step: Step) -> Step:
        def ended(result: CallResult, at_s: float) -> Sequence[Step] | None:
            following = step.ended(result, at_s)
            if following is None:
                return None
            self._open -= 1
            return self._counted(following)

        return replace(step, ended=ended)


def tune_tasks(
    tasks: Sequence[Task],
    spec: JobSpec,
    engine: Engine,
    machine: Fleet,
    *,
    policy: str = "load-aware",
    lanes: int = 3,
    listener: Listener | None = None,
) -> TaskTuning:
    """Tune tasks on an engine without a store; the engine stays open."""
    program = TaskJob(
        spec.name, spec, tasks, lambda _task, _trial, _artifact: None, lanes=lanes, workers=machine.slots
    )
    conductor = Conductor(Core(policy_named(policy)), engine, listener or Listener())
    conductor.add_machine(machine)
    conductor.submit(program)
    conductor.run()
    return program.tuning
