"""What a job plans to do with what is known."""

from dataclasses import replace

import pytest

from support.samples.traces import tiled_donor, tiled_space
from tuneloom.app.reuse.job_reuse import follow
from tuneloom.app.reuse.planning import Action, JobPlan, Known, make_plan
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.errors import InputError
from tuneloom.model import Budget, JobSpec, Task
from tuneloom.transfer import fitted_seeds

TASKS = [
    Task(key="big", name="big", weight=4, gflop=2.0, kernel_class="conv2d"),
    Task(key="mid", name="mid", gflop=1.0, kernel_class="conv2d_add_relu"),
    Task(key="pool", name="pool", gflop=0.01, kernel_class="max_pool2d"),
]
SPACES = [tiled_space("big", 64, 56), tiled_space("mid", 64, 28, inlined=2), tiled_space("pool", 64, 28)]


def spec(reuse: str, trials: int = 400) -> JobSpec:
    return JobSpec(name="net", model="net.onnx", budget=Budget(trials=trials), reuse=reuse)


def known_for(key: str, *donors: str) -> dict[str, Known]:
    records = [tiled_donor(n, donor, 1.0 + n, [(4, 16), (4, 7 + 7 * n)]) for n, donor in enumerate(donors)]
    space = next(space for space in SPACES if space.task_key == key)
    seeds, _ = fitted_seeds(space, records, 8)
    return {key: Known(seeds=tuple(seeds), names={"elsewhere": "fused_conv2d9"})}


def many_for(key: str) -> Known:
    """Eight seeds of other kernels."""
    records = [
        tiled_donor(n, f"other{n}", 1.0 + n, [(2**n, 2 ** (6 - n)), (4, 7)], reverse=bool(m))
        for m in (0, 1)
        for n in range(1, 5)
    ]
    space = next(space for space in SPACES if space.task_key == key)
    return Known(seeds=tuple(fitted_seeds(space, records, 8)[0]), names={})


def actions(plan: JobPlan) -> list[Action]:
    return [task.action for task in plan.tasks]


def test_nothing_is_reused_when_reuse_is_off() -> None:
    plan = make_plan(spec("off"), TASKS, [], {})
    assert actions(plan) == [Action.TUNE] * 3
    assert plan.trials == 400


def test_similar_tasks_share_and_the_most_important_represents_them() -> None:
    plan = make_plan(spec("auto"), TASKS, SPACES, {})
    assert actions(plan) == [Action.REPRESENT, Action.FOLLOW, Action.TUNE]
    assert plan.of("mid").representative == plan.of("big").representative == "big"
    assert plan.of("big").lend_after > 0 and plan.of("mid").seeds > 0


def test_a_known_class_starts_from_the_bank_and_does_not_wait_for_others() -> None:
    plan = make_plan(spec("auto"), TASKS, SPACES, known_for("mid", "elsewhere"))
    assert actions(plan) == [Action.TUNE, Action.TRANSFER, Action.TUNE]
    assert plan.of("mid").donors[0].name == "fused_conv2d9"
    assert "fused_conv2d9 (record 0, measured on cpu" in plan.of("mid").reason


def test_a_known_workload_is_continued_from_its_own_records() -> None:
    plan = make_plan(spec("auto"), TASKS, SPACES, known_for("mid", "elsewhere", "mid"))
    assert plan.of("mid").action is Action.CONTINUE
    assert plan.of("mid").reason == "tuned before: starts from record 1, measured on cpu"


def test_transfer_only_measures_the_default_the_seeds_and_a_guess_and_stops() -> None:
    plan = make_plan(spec("transfer-only"), TASKS, SPACES, known_for("mid", "elsewhere"))
    assert actions(plan) == [Action.KEEP, Action.TRANSFER, Action.KEEP]
    assert plan.of("mid").quota == 1 + plan.of("mid").seeds + 1
    assert plan.trials == sum(task.quota or 0 for task in plan.tasks)


def test_transfer_only_spends_little_on_what_the_model_hardly_feels() -> None:
    tasks = [replace(TASKS[0], weight=100), TASKS[1], TASKS[2]]
    known = {key: many_for(key) for key in ("big", "mid", "pool")}
    plan = make_plan(spec("transfer-only"), tasks, SPACES, known)
    assert [task.seeds for task in plan.tasks] == [6, 1, 1]
    assert [task.quota for task in plan.tasks] == [1 + 6 + 2, 1 + 1 + 1, 1 + 1 + 1]


def test_transfer_only_tries_two_records_of_the_very_same_workload() -> None:
    plan = make_plan(spec("transfer-only"), TASKS, SPACES, known_for("mid", "mid", "elsewhere", "mid", "mid"))
    assert plan.of("mid").quota == 1 + 2
    assert {donor.task_key for donor in plan.of("mid").donors} == {"mid"}


def test_sharing_spends_about_a_quarter_of_the_budget() -> None:
    assert make_plan(spec("share", 400), TASKS, SPACES, {}).trials == 96
    assert make_plan(spec("share", 20), TASKS, SPACES, {}).trials == 15


def test_a_small_budget_leaves_every_task_its_few_trials() -> None:
    many = [Task(key=f"t{n}", name=f"t{n}", gflop=1.0, kernel_class="conv2d") for n in range(40)]
    spaces = [tiled_space(task.key, 64, 56) for task in many]
    plan = make_plan(spec("auto", 200), many, spaces, {})
    (lead,) = [task for task in plan.tasks if task.action is Action.REPRESENT]
    promised = lead.lend_after + sum(3 + task.seeds for task in plan.tasks if task.action is Action.FOLLOW)
    assert promised <= 200


def test_the_expected_time_comes_from_earlier_runs_or_is_not_told() -> None:
    assert make_plan(spec("auto"), TASKS, SPACES, {}).expected_s is None
    assert make_plan(spec("auto"), TASKS, SPACES, {}, 0.5).expected_s == 200.0


def test_plans_are_plain_data() -> None:
    told = make_plan(spec("auto"), TASKS, SPACES, known_for("mid", "elsewhere")).to_json()
    assert told["mode"] == "auto"
    assert told["tasks"][1]["action"] == "transfer"
    assert told["tasks"][1]["donors"][0]["device_key"] == "cpu"


def test_members_wait_after_their_first_batch_until_their_representative_has_made_its_share() -> None:
    progress = [TaskProgress(index, task) for index, task in enumerate(TASKS)]
    follow(make_plan(spec("auto"), TASKS, SPACES, {}), progress)
    big, mid, pool = progress
    assert mid.waits_for is big and mid.waits and mid.open_to_more
    mid.batches = 1
    assert not mid.open_to_more and not mid.owed
    assert big.open_to_more and pool.open_to_more
    big.exhausted = True
    assert mid.open_to_more and mid.owed


def test_an_unknown_way_of_reuse_is_refused() -> None:
    with pytest.raises(InputError, match="'some'; known: auto, off"):
        spec("some")
