"""Which task gets the next batch: the one from which the whole model gains most."""

from collections.abc import Sequence

from tuneloom.app.tasks.progress import TaskProgress

_HOPE = 0.5  # weight of what may be found against what was found lately
_SIMILAR = 1.25  # a task this much slower than its like is expected to catch up
_FASTEST = 0.25  # of the hope of others is left to the one with the best rate of its class


def next_task(tasks: Sequence[TaskProgress], batch: int, lanes_per_task: int) -> TaskProgress | None:
    """The task to tune on, or None if every one is spent, busy or waits for another.

    Every task gets its first batch first; then those that may borrow measure what they are
    given, and those others wait for get their share, with a lane more than usual. That is
    little; all the rest goes where the model gains most.
    """
    free = [t for t in tasks if t.open_to_more and t.lanes < lanes_per_task]
    fresh = [t for t in free if t.batches == 0]
    if fresh:
        return max(fresh, key=lambda t: (t.task.weight * t.task.gflop, -t.index))
    owed = [t for t in free if t.owed]
    if owed:
        return max(owed, key=lambda t: (t.task.weight * t.task.gflop, -t.index))
    due = [t for t in tasks if t.open_to_more and t.due and t.lanes <= lanes_per_task]
    if due:
        return max(due, key=lambda t: (t.task.weight * t.task.gflop, -t.index))
    rates = best_rates(tasks)
    return max(free, key=lambda t: (expected_gain_s(t, batch, rates), -t.index), default=None)


def best_rates(tasks: Sequence[TaskProgress]) -> dict[str, float]:
    """The highest GFLOP/s reached in each kernel class that has several tasks to compare."""
    rates: dict[str, list[float]] = {}
    for t in tasks:
        if t.best_s and t.task.gflop:
            rates.setdefault(t.task.kernel_class, []).append(t.task.gflop / t.best_s)
    return {kernel_class: max(several) for kernel_class, several in rates.items() if len(several) > 1}


def expected_gain_s(progress: TaskProgress, batch: int, rates: dict[str, float]) -> float:
    """Seconds one run of the model may lose if this task gets a batch.

    What the last batches gained says what the next may gain; a task with few trials, or
    slower than others of its class, has more hope left.
    """
    best_s = progress.best_s
    trials = len(progress.trials) + progress.in_flight
    if best_s is None:
        return progress.task.weight * 1e-9
    lately = progress.gained_s(2 * batch) / 2
    hope = best_s * batch / max(trials, 1)
    rate = rates.get(progress.task.kernel_class, 0.0)
    if rate and progress.task.gflop:
        potential = best_s - progress.task.gflop / rate
        hope = min(hope, max(_SIMILAR * potential, _FASTEST * hope))
    return progress.task.weight * ((1 - _HOPE) * lately + _HOPE * hope)
