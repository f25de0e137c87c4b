"""How the trials of a job are promised before any is made.

Little is promised: a first look for every task, gifts, and what representatives need before
others borrow from them. All the rest is spent by the allocator, where the model gains most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tuneloom.model import JobSpec, Task
from tuneloom.transfer import TaskCluster

GLANCE = 3
"""What a task that will borrow tries before: the default, and what the tuner guesses."""

GUESSES = 2
"""A template's own guesses that are tried where nobody gives anything."""

_PART = 0.24  # of the trials that tuning every task takes is spent by sharing
_FEWEST = 5  # trials a task is worth at least: the default, guesses, a few seeds
_FOR_LEADS = 0.25  # of all trials may be made before anybody borrows
_MOST_FOR_ONE = 32  # two batches: what is found later is given later
_SEEDS = ((0.01, 4), (0.0, 2))
"""From which part of the model's work on a task is worth how many seeds."""

_ONLY_SEEDS = ((0.1, 6), (0.01, 3), (0.0, 1))
"""The same where nothing is searched afterwards: what the model hardly feels should cost hardly any time."""


def importance(task: Task) -> float:
    """How much of the model's work a task is; kernels that only move values count a little."""
    return task.weight * max(task.gflop, 1e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How trials are promised: the most of all, those of representatives, seeds of each task."""

    trials: int
    lend_after: Mapping[str, int]
    seeds: Mapping[str, int]


def divide(spec: JobSpec, tasks: Sequence[Task], clusters: Sequence[TaskCluster]) -> Division:
    """Promise every task its first look and a few seeds, representatives a little more."""
    trials = spec.budget.trials
    if spec.reuse == "share":
        trials = min(trials, max(_FEWEST * len(tasks), round(_PART * trials)))
    parts = {task.key: importance(task) for task in tasks}
    work = sum(parts.values())
    leads = {c.representative: sum(parts[m] for m in c.members) / work for c in clusters}
    pool = min(_FOR_LEADS * trials, max(0, trials - _FEWEST * (len(tasks) - len(leads))))
    lend_after = {key: round(min(_MOST_FOR_ONE, max(_FEWEST, pool * part))) for key, part in leads.items()}
    each = _seeds_each(trials, lend_after, len(tasks))
    if spec.reuse == "transfer-only":
        seeds = {key: _worth(part / work, _ONLY_SEEDS) for key, part in parts.items()}
    else:
        seeds = {key: max(1, min(_worth(part / work, _SEEDS), each)) for key, part in parts.items()}
    return Division(trials=trials, lend_after=lend_after, seeds=seeds)


def _worth(part: float, steps: Sequence[tuple[float, int]]) -> int:
    return next(count for least, count in steps if part >= least)


def _seeds_each(trials: int, lend_after: Mapping[str, int], tasks: int) -> int:
    """How many seeds every other task can measure when all have had their first look."""
    others = max(tasks - len(lend_after), 1)
    return (trials - sum(lend_after.values())) // others - GLANCE
