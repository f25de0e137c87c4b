"""From a model's import to its first trial: spaces described, foreign schedules fitted."""

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from support.jobs.small import drive
from support.samples.traces import tiled_space, tiled_trace
from tuneloom.app.conducting.programs import Step
from tuneloom.app.reuse.job_reuse import JobReuse
from tuneloom.app.reuse.planning import Action
from tuneloom.app.reuse.steps import DESCRIBE, FIT, Preparation
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Returned
from tuneloom.model import Budget, Candidate, JobSpec, Measurement, ModelSummary, SearchOptions, Task, Trial
from tuneloom.store import Provenance, Store, open_store

HERE = Provenance(family="llvm-512", target="llvm", device_key="cpu")
MINE = Task(key="mine", name="mine", gflop=1.0, kernel_class="conv2d", payload=b"my kernel")
MODEL = ModelSummary(name="net", digest="", target=HERE.target, family=HERE.family, tasks=(MINE,))
OTHER = Task(key="other", name="other", gflop=1.0, kernel_class="conv2d")
FOREIGN = tiled_trace([(4, 16), (4, 7), (2, 2)])
FITTED = tiled_trace([(8, 8), (4, 7), (2, 2)])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store.db")
    yield opened
    opened.close()


class Script:
    """Answers of workers, and what they were asked."""

    def __init__(self, **answers: CallResult) -> None:
        self.asked: list[Call] = []
        self._answers = answers

    def __call__(self, call: Call) -> CallResult:
        self.asked.append(call)
        return self._answers[call.function.partition(":")[2]]


def prepared(store: Store, script: Script) -> tuple[JobReuse, list[float]]:
    """A job whose bank has one schedule of a form that its own space does not have."""
    giver = store.add_job(store.create_run("import").id, "import").id
    store.add_tasks(giver, [OTHER], family=HERE.family, target=HERE.target)
    candidate = Candidate(key="c", configuration=FOREIGN, origin="import")
    store.add_trial(giver, "other", Trial(candidate=candidate, outcome=Measurement(seconds=(1.0,))), HERE)
    job = store.add_job(store.create_run("tune").id, "net").id
    store.add_tasks(job, [MINE], family=HERE.family, target=HERE.target)
    reuse = JobReuse(store, job, JobSpec(name="net", model="net", budget=Budget(trials=50)))
    ready: list[float] = []

    def begin_tuning(at_s: float) -> Sequence[Step]:
        ready.append(at_s)
        return []

    drive(Preparation(job, f"{job}:model", reuse, MODEL, begin_tuning).begin(), script)
    return reuse, ready


def test_a_schedule_of_a_foreign_form_is_fitted_as_a_whole_in_a_worker(store: Store) -> None:
    script = Script(
        describe=Returned(value=[tiled_space("mine", 64, 28)]), fit_traces=Returned(value=[[FITTED]])
    )
    reuse, ready = prepared(store, script)
    assert [call.function for call in script.asked] == [DESCRIBE, FIT]
    assert script.asked[1].arguments == ([(b"my kernel", FOREIGN)],)
    assert len(ready) == 1
    assert reuse.plan([MINE]).of("mine").action is Action.TRANSFER
    (seed,) = reuse.options(TaskProgress(0, MINE), SearchOptions(seed=0, trials=50, batch=8)).seeds
    assert (seed.configuration, seed.origin) == (FITTED, "transfer:1")


@pytest.mark.parametrize(
    "answers",
    [
        {"describe": Died(cause=KilledBy(signal.SIGKILL))},
        {
            "describe": Returned(value=[tiled_space("mine", 64, 28)]),
            "fit_traces": Died(cause=KilledBy(signal.SIGSEGV)),
        },
    ],
)
def test_whatever_fails_costs_gifts_and_never_the_job(store: Store, answers: dict[str, CallResult]) -> None:
    reuse, ready = prepared(store, Script(**answers))
    assert len(ready) == 1
    assert reuse.plan([MINE]).of("mine").action is Action.TUNE
