"""What tasks hear of each other while jobs go on, also of jobs that run beside their own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.samples.traces import tiled_space, tiled_trace
from tuneloom.app.reuse.job_reuse import JobReuse
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.model import Budget, Candidate, JobSpec, Measurement, SearchOptions, Task, Trial
from tuneloom.store import Provenance, Store, open_store

HERE = Provenance(family="llvm-512", target="llvm", device_key="cpu")
TASK = Task(key="mine", name="mine", gflop=1.0, kernel_class="conv2d")
LIKE = Task(key="like", name="like", gflop=1.0, kernel_class="conv2d")
BASE = SearchOptions(seed=5, trials=100, batch=16)
GOOD, BETTER, BEST = [(4, 16), (8, 7)], [(8, 8), (8, 7)], [(16, 4), (8, 7)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store.db")
    yield opened
    opened.close()


def trial(seconds: float, tiles: list[tuple[int, int]], origin: str = "search") -> Trial:
    text = tiled_trace(tiles)
    candidate = Candidate(key=str(hash(text)), configuration=text, origin=origin)
    return Trial(candidate=candidate, outcome=Measurement(seconds=(seconds,)))


def job_in(store: Store, run: str) -> str:
    job = store.add_job(run, f"job {len(store.jobs(run))}").id
    store.add_tasks(job, [TASK, LIKE], family=HERE.family, target=HERE.target)
    return job


def started(store: Store, job: str, reuse: str = "auto") -> tuple[JobReuse, TaskProgress]:
    """A job whose task `mine` has measured its first schedule, in 10 s."""
    spec = JobSpec(name="net", model="net", budget=Budget(trials=100), reuse=reuse)
    asking, progress = JobReuse(store, job, spec), TaskProgress(0, TASK)
    asking.look([HERE.family], [TASK, LIKE], [tiled_space("mine", 64, 56), tiled_space("like", 64, 56)])
    asking.plan([TASK, LIKE])
    asking.options(progress, BASE)
    progress.add(trial(10.0, [(64, 1), (56, 1)]), None)
    return asking, progress


def test_a_job_takes_what_another_found_for_the_same_kernel_meanwhile(store: Store) -> None:
    run = store.create_run("tune").id
    first, second = job_in(store, run), job_in(store, run)
    asking, progress = started(store, second)
    for seconds, tiles in ((3.0, GOOD), (2.0, BETTER), (1.0, BEST)):
        store.add_trial(first, "mine", trial(seconds, tiles), HERE)
    asking.look_for_news(progress)
    hints = asking.collect(progress)
    assert [seed.decisions for seed in hints.seeds] == [tuple(BEST), tuple(BETTER)]
    assert [told.seconds for told in hints.witnessed] == [3.0]
    asking.look_for_news(progress)
    assert asking.collect(progress).seeds == () and asking.collect(progress).witnessed == ()


def test_jobs_of_one_run_search_with_different_seeds(store: Store) -> None:
    run = store.create_run("tune").id
    seeds = [
        started(store, job_in(store, run))[0].options(TaskProgress(0, TASK), BASE).seed for _ in range(2)
    ]
    assert seeds == [5, 6]


def test_what_is_slower_than_the_tasks_own_best_is_no_news(store: Store) -> None:
    run = store.create_run("tune").id
    first, second = job_in(store, run), job_in(store, run)
    asking, progress = started(store, second)
    store.add_trial(first, "mine", trial(11.0, GOOD), HERE)
    asking.look_for_news(progress)
    hints = asking.collect(progress)
    assert hints.seeds == () and [told.seconds for told in hints.witnessed] == [11.0]


@pytest.mark.parametrize(("reuse", "heard"), [("auto", 1), ("share", 1), ("transfer", 0)])
def test_a_task_hears_of_a_like_one_of_its_job_where_tasks_share(
    store: Store, reuse: str, heard: int
) -> None:
    job = job_in(store, store.create_run("tune").id)
    asking, progress = started(store, job, reuse)
    store.add_trial(job, "like", trial(1.0, GOOD), HERE)
    asking.look_for_news(progress)
    assert len(asking.collect(progress).seeds) == heard
    store.add_trial(job, "like", trial(0.5, BETTER), HERE)
    asking.look_for_news(progress)
    assert len(asking.collect(progress).seeds) == heard


def test_another_devices_times_are_not_taken_for_the_tasks_own(store: Store) -> None:
    run = store.create_run("tune").id
    first, second = job_in(store, run), job_in(store, run)
    asking, progress = started(store, second)
    elsewhere = Provenance(family="llvm-512", target="llvm", device_key="board")
    store.add_trial(first, "mine", trial(20.0, GOOD), elsewhere)
    asking.look_for_news(progress)
    assert asking.collect(progress).witnessed == ()


def test_where_nothing_is_searched_nothing_is_heard(store: Store) -> None:
    run = store.create_run("tune").id
    first, second = job_in(store, run), job_in(store, run)
    asking, progress = started(store, second, "transfer-only")
    store.add_trial(first, "mine", trial(1.0, GOOD), HERE)
    asking.look_for_news(progress)
    assert asking.collect(progress).seeds == ()
