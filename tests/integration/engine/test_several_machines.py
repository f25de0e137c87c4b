"""Calls, searches and whole jobs on several machines, of which some get lost: the protocol carries a farm."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest

from support.engines.several_machines import SeveralMachines, small_machine
from support.jobs.task_job import TaskJob
from tuneloom.app.conducting.conductor import Conductor
from tuneloom.app.conducting.listening import Listener
from tuneloom.engine.api import Engine, ResourceJoined
from tuneloom.engine.calls import Place
from tuneloom.model import Budget, JobSpec, Task, Trial
from tuneloom.scheduling import Core, policy_named
from tuneloom.store import SpanRecord
from tuneloom.testing.contracts.engine import EngineContract
from tuneloom.tuners.mock.kernel import mock_tasks

pytestmark = pytest.mark.integration

TRIALS = 90


class TestSeveralMachines(EngineContract):
    place = Place(resource="one/host", machine="one")

    @pytest.fixture
    def engine(self) -> Iterator[Engine]:
        with closing(SeveralMachines([small_machine("one"), small_machine("two")])) as engine:
            joined = [r.offer.resource.name for r in engine.poll(30) if isinstance(r, ResourceJoined)]
            assert joined == ["one/host", "one/cpu0", "two/host", "two/cpu0"]
            yield engine

    def elsewhere(self) -> Place:
        return Place(resource="two/host", machine="two")

    def lose_machine(self, engine: Engine, machine: str) -> None:
        assert isinstance(engine, SeveralMachines)
        engine.lose(machine)


class Unplugger(Listener):
    """Unplugs machines one after the other while trials are made, and plugs them in again later."""

    def __init__(self, engine: SeveralMachines) -> None:
        self.engine = engine
        self.program: TaskJob | None = None
        self.spans: list[SpanRecord] = []
        self.ended: list[tuple[str, bool]] = []
        self.failed: list[Exception] = []
        self._plan = [
            (10, lambda: engine.lose("one")),
            (25, lambda: engine.join("one")),
            (40, lambda: engine.lose("two")),
            (55, lambda: engine.join("two")),
            (70, lambda: engine.lose("one")),
        ]

    def ran(self, span: SpanRecord) -> None:
        self.spans.append(span)

    def job_ended(self, job: str, *, cancelled: bool) -> None:
        self.ended.append((job, cancelled))

    def job_failed(self, job: str, error: Exception) -> None:
        self.failed.append(error)

    def beat(self, now_s: float) -> None:
        if self._plan and self.program is not None and self.program.tuning.spent >= self._plan[0][0]:
            self._plan.pop(0)[1]()


@pytest.mark.parametrize("policy", ["load-aware", "interleaved"])
def test_a_job_on_machines_that_come_and_go_makes_every_trial_once_and_blames_nobody(policy: str) -> None:
    kept: list[tuple[str, str]] = []

    def keep(task: Task, trial: Trial, _artifact: object) -> None:
        kept.append((task.key, trial.candidate.key))

    tasks = mock_tasks("mock:tasks=3,size=60,build=0.005,profile=0.005,select=0.005,update=0.005")
    spec = JobSpec(name="net", model="mock:", tuner="mock", budget=Budget(trials=TRIALS), batch=5)
    machines = [small_machine("one", slots=2), small_machine("two", slots=2)]
    with closing(SeveralMachines(machines, "tuneloom.tuners.mock.warmth:warm_up")) as engine:
        heard = Unplugger(engine)
        heard.program = TaskJob("net", spec, tasks, keep, lanes=4, workers=3)
        conductor = Conductor(Core(policy_named(policy)), engine, heard)
        conductor.submit(heard.program)
        conductor.run()
        conductor.core.check()
    assert (heard.ended, heard.failed) == ([("net", False)], [])
    assert len(kept) == TRIALS and max(Counter(kept).values()) == 1
    assert not any(progress.failures for progress in heard.program.tuning.tasks)
    assert {span.resource for span in heard.spans} == {"one/host", "one/cpu0", "two/host", "two/cpu0"}
