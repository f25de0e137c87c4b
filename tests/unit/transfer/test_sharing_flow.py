"""Representatives first, members from their best: through the very lanes that real jobs use."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.jobs.small import drive
from support.samples.traces import tiled_space, tiled_trace
from tuneloom.app.reuse.division import GLANCE
from tuneloom.app.reuse.job_reuse import JobReuse, follow
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.task_tuning import TaskTuning
from tuneloom.engine.calls import Call, CallResult
from tuneloom.model import Artifact, Budget, JobSpec, Seed, Task, Trial
from tuneloom.store import Provenance, Store, open_store
from tuneloom.testing.jobs.fake_stages import FakeStages

HERE = Provenance(family="llvm-512", target="llvm", device_key="cpu")
LEAD = Task(key="lead", name="lead", weight=9, gflop=1.0, kernel_class="conv2d")
MEMBER = Task(key="member", name="member", gflop=0.5, kernel_class="conv2d_relu")


class SeededStages(FakeStages):
    """Fake stages that note which seeds a search was given while it went on."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[tuple[str, tuple[Seed, ...]]] = []

    def __call__(self, call: Call) -> CallResult:
        if call.function.endswith(":select") and len(call.arguments) > 2:
            key, count, seeds, _ = call.arguments
            self.given.append((key, seeds))
            self.log.append("seeds")
            call = replace(call, arguments=(key, count))
        return super().__call__(call)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store.db")
    yield opened
    opened.close()


def shared(store: Store, trials: int) -> tuple[TaskTuning, SeededStages]:
    """Tune a representative and a member that is like it."""
    tasks = [LEAD, MEMBER]
    job = store.add_job(store.create_run("tune").id, "net").id
    store.add_tasks(job, tasks, family=HERE.family, target=HERE.target)
    spec = JobSpec(name="net", model="net", budget=Budget(trials=trials), batch=4, reuse="auto")
    reuse = JobReuse(store, job, spec)
    reuse.look([HERE.family], tasks, [tiled_space("lead", 64, 56), tiled_space("member", 64, 28)])
    progress = [TaskProgress(index, task) for index, task in enumerate(tasks)]
    follow(reuse.plan(tasks), progress)

    def keep(task: Task, trial: Trial, _artifact: Artifact | None) -> None:
        number = int(trial.candidate.configuration)
        tiles = [(64 // 2 ** (number % 4), 2 ** (number % 4)), (14, 4)]
        kept = replace(trial.candidate, configuration=tiled_trace(tiles))
        store.add_trial(job, task.key, replace(trial, candidate=kept), HERE)

    tuning = TaskTuning(job, spec, progress, keep, lanes=3, workers=1, reuse=reuse)
    stages = SeededStages()
    drive(tuning.begin(0.0, b""), stages)
    return tuning, stages


def test_a_member_is_given_its_representatives_best_when_that_has_made_its_share(store: Store) -> None:
    tuning, stages = shared(store, 60)
    lead, member = tuning.tasks
    ((_, seeds),) = stages.given
    assert {seed.origin for seed in seeds} == {"share:lead"}
    assert seeds[0].decisions[1] == (7, 4)
    before = stages.log[: stages.log.index("seeds")]
    learned = sum(int(line.split()[2]) for line in before if line.startswith("update lead"))
    assert learned >= lead.lend_after > 0
    assert sum(int(line.split()[2]) for line in before if line.startswith("update member")) == GLANCE
    assert member.seeded and tuning.spent == 60


def test_every_task_has_its_first_look_before_anybody_gets_a_second(store: Store) -> None:
    _, stages = shared(store, 60)
    selects = [line for line in stages.log if line.startswith("select")]
    assert set(selects[:2]) == {"select lead", "select member"}


@pytest.mark.parametrize("trials", [1, 4, 7, 30])
def test_a_shared_budget_is_spent_to_the_trial(store: Store, trials: int) -> None:
    tuning, _ = shared(store, trials)
    assert tuning.spent == trials
    assert not tuning.running
