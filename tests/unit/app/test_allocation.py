"""Which task gets the next batch."""

from support.jobs.small import measured_trial, small_task
from tuneloom.app.tasks.progress import TaskProgress
from tuneloom.app.tuning.allocation import best_rates, expected_gain_s, next_task


def progress(
    index: int, times_s: list[float], *, weight: int = 1, gflop: float = 1.0, kernel_class: str = "conv2d"
) -> TaskProgress:
    found = TaskProgress(
        index, small_task(f"t{index}", weight=weight, gflop=gflop, kernel_class=kernel_class)
    )
    for number, seconds in enumerate(times_s):
        found.add(measured_trial(f"p{number}", seconds), None)
    found.batches = 1 if times_s else 0
    return found


def test_tasks_without_a_batch_come_first_the_heaviest_of_them_before_the_others() -> None:
    tuned = progress(0, [1.0] * 16, weight=100)
    light, heavy = progress(1, [], gflop=1.0), progress(2, [], gflop=5.0)
    assert next_task([tuned, light, heavy], 16, 1) is heavy


def test_a_task_the_model_runs_often_goes_before_an_equal_one_it_runs_once() -> None:
    once, often = progress(0, [1.0, 0.9]), progress(1, [1.0, 0.9], weight=8)
    assert next_task([once, often], 16, 1) is often


def test_a_task_that_still_gains_goes_before_one_that_stands_still() -> None:
    still = progress(0, [1.0] * 64)
    gaining = progress(1, [2.0 - 0.02 * n for n in range(50)] + [1.0] * 14)
    assert next_task([still, gaining], 16, 1) is gaining


def test_a_task_far_behind_its_class_has_more_hope() -> None:
    quick = progress(0, [0.1] * 64)
    slow = progress(1, [0.5] * 64)
    rates = best_rates([quick, slow])
    assert rates == {"conv2d": 10.0}
    assert expected_gain_s(slow, 16, rates) > expected_gain_s(quick, 16, rates)


def test_busy_and_exhausted_tasks_get_nothing() -> None:
    busy, spent = progress(0, [1.0]), progress(1, [1.0])
    busy.lanes = 1
    spent.exhausted = True
    assert next_task([busy, spent], 16, 1) is None
    assert next_task([busy, spent], 16, 2) is busy


def test_a_task_of_which_every_trial_failed_is_not_forgotten() -> None:
    barren = progress(0, [])
    barren.batches = 1
    assert expected_gain_s(barren, 16, {}) > 0
