"""What a job will do with what is known: which tasks are tuned, which share, where each starts.

A plan is data made from data; nothing is measured for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from tuneloom.model import JobSpec, Task, TaskSpace
from tuneloom.transfer import CLUSTERINGS, FittedSeed, KernelProfile, TaskCluster

_PART = 4  # sharing spends a quarter of what tuning every task would
_FEWEST = 5  # trials a task is worth at least: the default, guesses, a few seeds
_GLANCE = 3
_MOST_FOR_ONE = 96  # after so many trials a representative has seen enough to share
_FOR_LEADS = 0.6  # of what is left when every task had its few
_SEEDS = 6
_SEEDS_OF_SMALL = 3
_GUESSES = (
    2  # a template's own guesses are tried where nobody gives anything, one of them where somebody does
)
_SMALL = 0.01  # of the model's work
BORROWS = frozenset(("auto", "transfer", "transfer-only"))
SHARES = frozenset(("auto", "share"))


class Action(StrEnum):
    """What happens to a task."""

    TUNE = "tune"
    CONTINUE = "continue"
    TRANSFER = "transfer"
    REPRESENT = "represent"
    SHARE = "share"
    KEEP = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class DonorNote:
    """Who will give a schedule, for people: the record, its kernel, its device, its promise."""

    record: int
    task_key: str
    name: str
    device_key: str
    expected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskPlan:
    """What is planned for one task, and why in words.

    `share` is how many trials it makes before others may borrow from it, `quota` the
    most it gets at all (None: as many as it is worth).
    """

    task_key: str
    name: str
    action: Action
    reason: str
    representative: str | None = None
    donors: tuple[DonorNote, ...] = ()
    seeds: int = 0
    share: int = 0
    quota: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain data for the store and for programs."""
        return asdict(self) | {"action": self.action.value, "donors": [asdict(d) for d in self.donors]}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPlan:
    """The plan of a whole job; `trials` is the most it spends, `expected_s` a guess from earlier runs."""

    mode: str
    tasks: tuple[TaskPlan, ...]
    trials: int
    expected_s: float | None = None

    def of(self, task_key: str) -> TaskPlan:
        """The plan of one task."""
        return next(plan for plan in self.tasks if plan.task_key == task_key)

    def to_json(self) -> dict[str, Any]:
        """Plain data for programs."""
        tasks = [plan.to_json() for plan in self.tasks]
        return {"mode": self.mode, "trials": self.trials, "expected_s": self.expected_s, "tasks": tasks}


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the bank knows for one task: seeds that fit, best first, and the names of their kernels."""

    seeds: tuple[FittedSeed, ...] = ()
    names: Mapping[str, str]


def make_plan(
    spec: JobSpec,
    tasks: Sequence[Task],
    spaces: Sequence[TaskSpace],
    known: Mapping[str, Known],
    seconds_per_trial: float | None = None,
) -> JobPlan:
    """Decide for every task; spaces in the order of the tasks, none at all if nothing is reused."""
    clusters = clusters_of(tasks, spaces, known) if spec.reuse in SHARES and spaces else []
    homes = {member: cluster for cluster in clusters for member in cluster.members}
    division = divide(spec, tasks, clusters)
    plans = tuple(
        _plan_task(spec, task, known.get(task.key), homes.get(task.key), division) for task in tasks
    )
    trials = division.trials
    if spec.reuse == "transfer-only":
        trials = min(spec.budget.trials, sum(plan.quota or 0 for plan in plans))
    expected_s = None if seconds_per_trial is None else seconds_per_trial * trials
    return JobPlan(mode=spec.reuse, tasks=plans, trials=trials, expected_s=expected_s)


def clusters_of(
    tasks: Sequence[Task],
    spaces: Sequence[TaskSpace],
    known: Mapping[str, Known],
    clustering: str = "leaders",
) -> list[TaskCluster]:
    """Clusters of tasks for which the bank has nothing; those of one member are left out."""
    kernels = [
        KernelProfile(key=task.key, kernel_class=task.kernel_class, space=space, importance=importance(task))
        for task, space in zip(tasks, spaces, strict=True)
        if space.sketches and not (task.key in known and known[task.key].seeds)
    ]
    return [cluster for cluster in CLUSTERINGS[clustering](kernels) if len(cluster.members) > 1]


def importance(task: Task) -> float:
    """How much of the model's work a task is; kernels that only move values count a little."""
    return task.weight * max(task.gflop, 1e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How the trials of a job are divided: all of them, those of representatives, seeds of each task."""

    trials: int
    shares: Mapping[str, int]
    seeds: Mapping[str, int]


def divide(spec: JobSpec, tasks: Sequence[Task], clusters: Sequence[TaskCluster]) -> Division:
    """Every task can measure its default and a few seeds; of the rest representatives get the most."""
    trials = spec.budget.trials
    if spec.reuse == "share":
        trials = min(trials, max(_FEWEST * len(tasks), trials // _PART))
    parts = {task.key: importance(task) for task in tasks}
    work = sum(parts.values())
    leads = {c.representative: sum(parts[m] for m in c.members) / work for c in clusters}
    others = len(tasks) - len(leads)
    pool = _FOR_LEADS * max(0, trials - _FEWEST * others) / (sum(leads.values()) or 1.0)
    shares = {key: round(min(_MOST_FOR_ONE, max(_FEWEST, pool * part))) for key, part in leads.items()}
    each = (trials - sum(shares.values())) // max(others, 1) - _GLANCE
    if spec.reuse == "transfer-only":
        each = _SEEDS
    seeds = {
        key: max(1, min(_SEEDS if part >= _SMALL * work else _SEEDS_OF_SMALL, each))
        for key, part in parts.items()
    }
    return Division(trials=trials, shares=shares, seeds=seeds)


def _plan_task(
    spec: JobSpec, task: Task, known: Known | None, cluster: TaskCluster | None, division: Division
) -> TaskPlan:
    seeds = division.seeds[task.key]
    if spec.reuse == "off":
        return TaskPlan(task_key=task.key, name=task.name, action=Action.TUNE, reason="reuse is off")
    if known is not None and known.seeds:
        return _borrowing(spec, task, known, seeds)
    if spec.reuse == "transfer-only":
        reason = "nobody has tuned a kernel like it: as it is, or as a first guess has it"
        quota = 1 + _GUESSES
        return TaskPlan(task_key=task.key, name=task.name, action=Action.KEEP, reason=reason, quota=quota)
    if cluster is not None:
        return _sharing(task, cluster, seeds, division)
    reason = "nothing like it is known: tuned from scratch"
    return TaskPlan(task_key=task.key, name=task.name, action=Action.TUNE, reason=reason)


def _borrowing(spec: JobSpec, task: Task, known: Known, seeds: int) -> TaskPlan:
    notes = tuple(_note(seed, known.names) for seed in known.seeds[:seeds])
    own = [note for note in notes if note.task_key == task.key]
    first = own[0] if own else notes[0]
    if own:
        reason = f"tuned before: starts from record {first.record}, measured on {first.device_key}"
    else:
        reason = (
            f"starts from {first.name} (record {first.record} of {first.device_key}, "
            f"promise {first.expected:.2f}) and {len(notes) - 1} more"
        )
    return TaskPlan(
        task_key=task.key,
        name=task.name,
        action=Action.CONTINUE if own else Action.TRANSFER,
        reason=reason,
        donors=notes,
        seeds=len(notes),
        quota=1 + len(notes) + 1 if spec.reuse == "transfer-only" else None,
    )


def _sharing(task: Task, cluster: TaskCluster, seeds: int, division: Division) -> TaskPlan:
    lead = cluster.representative
    if task.key == lead:
        return TaskPlan(
            task_key=task.key,
            name=task.name,
            action=Action.REPRESENT,
            reason=f"tuned for itself and {len(cluster.members) - 1} similar kernels",
            representative=lead,
            share=division.shares[lead],
        )
    return TaskPlan(
        task_key=task.key,
        name=task.name,
        action=Action.SHARE,
        reason="starts from the best of its representative, then refined where the model gains",
        representative=lead,
        seeds=seeds,
    )


def _note(fitted: FittedSeed, names: Mapping[str, str]) -> DonorNote:
    donor = fitted.donor
    return DonorNote(
        record=donor.record,
        task_key=donor.task_key,
        name=names.get(donor.task_key, donor.task_key),
        device_key=donor.device_key,
        expected=round(fitted.expected, 3),
    )
