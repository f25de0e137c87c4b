"""A job's questions to a bank, and what becomes of its gifts."""

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.samples.traces import tiled_space, tiled_trace
from tuneloom.app.reuse.donors import DonorBank
from tuneloom.app.reuse.job_reuse import JobReuse
from tuneloom.app.reuse.planning import Action
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.model import (
    NOWHERE,
    Budget,
    Candidate,
    JobSpec,
    Measurement,
    SearchOptions,
    Task,
    TaskSpace,
    Trial,
)
from tuneloom.store import Provenance, RunStatus, Store, open_store

HERE = Provenance(family="llvm-512", target="llvm", device_key="cpu")
TASK = Task(key="mine", name="mine", gflop=1.0, shapes="1×64×56 → 1×64×56", kernel_class="conv2d_relu")
OTHER = Task(key="other", name="fused_conv2d9", gflop=1.0, shapes="1×64×28 → 1×64×28", kernel_class="conv2d")
SPACE = tiled_space("mine", 64, 56)
BASE = SearchOptions(seed=0, trials=100, batch=16)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "store.db")
    yield opened
    opened.close()


def trial(key: str, seconds: float, tiles: list[tuple[int, int]], origin: str = "search") -> Trial:
    candidate = Candidate(key=key, configuration=tiled_trace(tiles), origin=origin)
    return Trial(candidate=candidate, outcome=Measurement(seconds=(seconds,)))


def job_of(store: Store, *tasks: Task, provenance: Provenance = HERE) -> str:
    job = store.add_job(store.create_run("tune").id, "job").id
    store.add_tasks(job, tasks, family=provenance.family, target=provenance.target)
    return job


def reuse_of(store: Store, job: str, mode: str = "auto", device: str = "cpu") -> JobReuse:
    spec = JobSpec(name="net", model="net", budget=Budget(trials=100), reuse=mode, device_key=device)
    reuse = JobReuse(store, job, spec)
    assert reuse.look(["llvm-512"], [TASK], [SPACE]) == {}
    return reuse


def test_a_kernel_with_another_epilogue_and_shape_gives_its_best(store: Store) -> None:
    store.add_trials(job_of(store, OTHER), "other", [trial("a", 1.0, [(4, 16), (4, 7)])], HERE)
    job = job_of(store, TASK)
    reuse = reuse_of(store, job)
    assert reuse.plan([TASK]).of("mine").action is Action.TRANSFER
    options = reuse.options(TaskProgress(0, TASK), BASE)
    assert options.seeds[0].decisions == ((4, 16), (8, 7))
    assert options.seeds[0].origin.startswith("transfer:")
    assert [lesson.decisions for lesson in options.lessons] == [((4, 16), (8, 7))]
    assert store.tasks(job)[0].plan["action"] == "transfer"


def test_another_target_family_gives_nothing(store: Store) -> None:
    alien = Provenance(family="cuda", target="cuda", device_key="h200")
    job = job_of(store, OTHER, provenance=alien)
    store.add_trials(job, "other", [trial("a", 1.0, [(4, 16), (4, 7)])], alien)
    assert DonorBank(store, "mine.1", "llvm-512").donors(TASK) == []


def test_untuned_defaults_and_failures_are_no_donors(store: Store) -> None:
    store.add_trials(job_of(store, OTHER), "other", [trial("d", 1.0, [(4, 16), (4, 7)], "default")], HERE)
    assert DonorBank(store, "mine.1", "llvm-512").donors(TASK) == []


def test_workloads_without_records_do_not_hide_those_that_have_some(store: Store) -> None:
    empty = [
        Task(key=f"e{n}", name="e", shapes=TASK.shapes, kernel_class="conv2d_relu", gflop=1.0)
        for n in range(20)
    ]
    job = job_of(store, OTHER, *empty)
    store.add_trials(job, "other", [trial("a", 1.0, [(4, 16), (4, 7)])], HERE)
    assert [donor.task_key for donor in DonorBank(store, "x", "llvm-512").donors(TASK)] == ["other"]


def test_the_answer_is_bounded_however_many_records_there_are(store: Store) -> None:
    tasks = [Task(key=f"k{n}", name="k", kernel_class="conv2d", gflop=1.0) for n in range(12)]
    job = job_of(store, *tasks)
    for task in tasks:
        store.add_trials(job, task.key, [trial(f"{n}", 1.0 + n, [(4, 16), (4, 7)]) for n in range(9)], HERE)
    assert len(DonorBank(store, "x", "llvm-512").donors(TASK)) == 18


def test_schedules_of_the_same_job_are_marked_as_shared(store: Store) -> None:
    job = job_of(store, TASK, OTHER)
    reuse = reuse_of(store, job, "share")
    reuse.plan([TASK])
    store.add_trials(job, "other", [trial("a", 1.0, [(4, 16), (4, 7)])], HERE)
    progress = TaskProgress(0, TASK)
    assert reuse.prepare(progress) > 0
    assert {seed.origin for seed in reuse.options(progress, BASE).seeds} == {"share:other"}


def test_what_the_job_measured_of_the_very_task_is_no_gift(store: Store) -> None:
    job = job_of(store, TASK)
    store.add_trials(job, "mine", [trial("a", 1.0, [(4, 16), (8, 7)])], HERE)
    assert DonorBank(store, job, "llvm-512").donors(TASK) == []
    assert len(DonorBank(store, "later.1", "llvm-512").donors(TASK)) == 1


def test_sharing_takes_nothing_from_runs_that_have_ended(store: Store) -> None:
    ended = job_of(store, OTHER)
    store.add_trials(ended, "other", [trial("a", 1.0, [(4, 16), (4, 7)])], HERE)
    store.finish_run(store.job(ended).run, RunStatus.FINISHED)
    reuse = reuse_of(store, job_of(store, TASK), "share")
    reuse.plan([TASK])
    assert reuse.prepare(TaskProgress(0, TASK)) == 0


def test_transfer_only_searches_nothing(store: Store) -> None:
    reuse = reuse_of(store, job_of(store, TASK), "transfer-only")
    reuse.plan([TASK])
    options = reuse.options(TaskProgress(0, TASK), BASE)
    assert options.only_seeds and options.seeds == () and options.lessons == ()


def test_gifts_tell_who_gave_what_it_took_and_whether_it_is_used(store: Store) -> None:
    store.add_trials(job_of(store, OTHER), "other", [trial("a", 1.0, [(4, 16), (4, 7)])], HERE)
    job = job_of(store, TASK)
    reuse, progress = reuse_of(store, job), TaskProgress(0, TASK)
    reuse.plan([TASK])
    origin = reuse.options(progress, BASE).seeds[0].origin
    progress.add(trial("gift", 0.25, [(4, 16), (8, 7)], origin), None)
    progress.add(trial("found", 0.5, [(64, 1), (8, 7)]), None)
    reuse.settle([progress], {"mine": "gift"})
    (gift,) = store.tasks(job)[0].plan["gifts"]
    assert gift == {
        "donor": "fused_conv2d9",
        "source": "record 1, measured on cpu",
        "after_s": 0.25,
        "used": True,
    }
    told = store.notes(store.job(job).run)["reuse"]["net"]
    assert told.startswith("schedules borrowed: 1, in use: 1; 98 of 100 trials saved, about ")


@pytest.mark.parametrize("damage", ["configuration = x'01ffff'", "seconds = '[0]'", "seconds = 'torn'"])
def test_a_damaged_record_costs_its_own_gift_and_hides_no_other(
    store: Store, tmp_path: Path, damage: str
) -> None:
    trials = [trial(str(n), 1.0 + n, [(4, 16), (4, 7)]) for n in range(10)]
    store.add_trials(job_of(store, OTHER), "other", trials, HERE)
    with sqlite3.connect(tmp_path / "store.db") as database:
        database.execute(f"UPDATE trials SET {damage} WHERE best_s < 8.5")
    database.close()
    assert [donor.seconds for donor in DonorBank(store, "x", "llvm-512").donors(TASK)] == [9.0, 10.0]
    assert [record.seconds for record in store.all_trials()] == [9.0, 10.0]


def test_time_is_expected_from_runs_that_measured(store: Store) -> None:
    job = job_of(store, OTHER)
    store.add_trials(job, "other", [trial(f"{n}", 1.0, [(4, 16), (4, 7)]) for n in range(50)], HERE)
    store.finish_run(store.job(job).run, RunStatus.FINISHED)
    expected_s = reuse_of(store, "").plan([TASK], keep=False).expected_s
    assert expected_s is not None and 0 <= expected_s < 600


def test_the_best_of_earlier_jobs_is_known_for_kernels_that_get_no_trial(store: Store) -> None:
    tiles = [(4, 16), (4, 14)]
    earlier = [trial("slow", 2.0, tiles), trial("fast", 1.0, tiles), trial("d", 0.5, tiles, "default")]
    store.add_trials(job_of(store, TASK), "mine", earlier, HERE)
    known = reuse_of(store, job_of(store, TASK)).best_known(TASK)
    assert known is not None and known.candidate.key == "fast"
    assert known.candidate.origin.startswith("transfer:")
    assert reuse_of(store, job_of(store, TASK), mode="share").best_known(TASK) is None


def test_records_of_another_device_are_not_taken_untried(store: Store) -> None:
    there = Provenance(family="llvm-512", target="llvm", device_key="board")
    store.add_trials(job_of(store, TASK), "mine", [trial("a", 1.0, [(4, 16), (4, 14)])], there)
    assert reuse_of(store, job_of(store, TASK)).best_known(TASK) is None


def test_a_job_without_a_device_takes_records_of_any(store: Store) -> None:
    there = Provenance(family="llvm-512", target="llvm", device_key="board")
    store.add_trials(job_of(store, TASK), "mine", [trial("a", 1.0, [(4, 16), (4, 14)])], there)
    known = reuse_of(store, job_of(store, TASK), device=NOWHERE).best_known(TASK)
    assert known is not None and known.candidate.key == "a"


def test_records_of_a_related_gpu_start_the_search(store: Store) -> None:
    ampere = Provenance(family="sm_80", target="cuda", device_key="a100")
    kernel = Task(key="sm_90-1", name="p", gflop=1.0, shapes="64×64 → 64×64", kernel_class="matmul")
    there = replace(kernel, key="sm_80-1")
    configuration = 'triton:{"tile":64}'
    measured = Trial(
        candidate=Candidate(key="a", configuration=configuration), outcome=Measurement(seconds=(1.0,))
    )
    store.add_trials(job_of(store, there, provenance=ampere), there.key, [measured], ampere)
    spec = JobSpec(name="net", model="net", budget=Budget(trials=100))
    reuse = JobReuse(store, job_of(store, kernel), spec)
    reuse.look(["sm_90", "sm_80"], [kernel], [TaskSpace(task_key=kernel.key, sketches=())])
    assert reuse.plan([kernel]).of(kernel.key).action is Action.TRANSFER
    seeds = reuse.options(TaskProgress(0, kernel), BASE).seeds
    assert [seed.configuration for seed in seeds] == [configuration]
    assert reuse.best_known(kernel) is None


def test_a_kernel_starts_from_its_twin_in_another_type_before_its_kin_in_another_batch(store: Store) -> None:
    here = Provenance(family="sm_90", target="cuda", device_key="cuda")
    shapes = "{0}×512, 512×512 → {0}×512"
    named = {"half": shapes.format(256), "small": shapes.format(16), "bfloat": shapes.format(256)}
    tasks = {
        name: Task(key=f"sm_90-{name}", name=name, gflop=1.0, shapes=text, kernel_class="matmul_add_cast")
        for name, text in named.items()
    }
    for name in ("small", "half"):
        made = Candidate(key=name, configuration=f'triton:{{"tile":{len(name)}}}')
        measured = Trial(candidate=made, outcome=Measurement(seconds=(1.0,)))
        store.add_trials(job_of(store, tasks[name], provenance=here), tasks[name].key, [measured], here)
    kernel = tasks["bfloat"]
    spec = JobSpec(name="net", model="net", budget=Budget(trials=100))
    reuse = JobReuse(store, job_of(store, kernel), spec)
    reuse.look(["sm_90"], [kernel], [TaskSpace(task_key=kernel.key, sketches=())])
    reuse.plan([kernel])
    seeds = reuse.options(TaskProgress(0, kernel), BASE).seeds
    assert [seed.configuration for seed in seeds] == ['triton:{"tile":4}', 'triton:{"tile":5}']
