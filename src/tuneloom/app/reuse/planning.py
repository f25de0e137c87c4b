"""What a job will reuse: which tasks are tuned from scratch, which follow others, where each starts.

A plan is data made from data; nothing is measured for it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from tuneloom.app.reuse.division import GUESSES, Division, divide, importance
from tuneloom.model import JobSpec, Task, TaskSpace
from tuneloom.transfer import CLUSTERINGS, FittedSeed, KernelProfile, TaskCluster

_SEEDS_A_GUESS = 3  # the default is tried, too, and the template's own guesses
_SAME = 2  # records of the very same workload: one would do, the second is for noise
BORROWING_MODES = frozenset(("auto", "transfer", "transfer-only"))
SHARING_MODES = frozenset(("auto", "share"))


class Action(StrEnum):
    """What happens to a task."""

    TUNE = "tune"
    CONTINUE = "continue"
    TRANSFER = "transfer"
    REPRESENT = "represent"
    FOLLOW = "follow"
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

    A plan says where a task starts and who comes first; how many trials it gets is decided
    while they are made. `lend_after` is how many trials it makes before others may borrow from it,
    `quota` the most where nothing is searched (None: as many as it is worth).
    """

    task_key: str
    name: str
    action: Action
    reason: str
    representative: str | None = None
    donors: tuple[DonorNote, ...] = ()
    seeds: int = 0
    lend_after: int = 0
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
    *,
    known_suffices: bool = False,
) -> JobPlan:
    """Decide for every task; spaces in the order of the tasks, none at all if nothing is reused.

    Where what is known of the tasks suffices, it is measured again and nothing is searched.
    """
    clusters = clusters_of(tasks, spaces, known) if spec.reuse in SHARING_MODES and spaces else []
    homes = {member: cluster for cluster in clusters for member in cluster.members}
    division = divide(spec, tasks, clusters)
    plans = tuple(
        _plan_known(task, known.get(task.key))
        if known_suffices
        else _plan_task(spec, task, known.get(task.key), homes.get(task.key), division)
        for task in tasks
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


def _plan_task(
    spec: JobSpec, task: Task, known: Known | None, cluster: TaskCluster | None, division: Division
) -> TaskPlan:
    seeds = division.seeds[task.key]
    if spec.reuse == "off":
        return _plan(task, Action.TUNE, reason="reuse is off")
    if known is not None and known.seeds:
        return _borrowing(spec, task, known, seeds)
    if spec.reuse == "transfer-only":
        reason = "no similar kernel in the bank: default schedule or first guess"
        quota = 1 + GUESSES
        return _plan(task, Action.KEEP, reason=reason, quota=quota)
    if cluster is not None:
        return _sharing(task, cluster, seeds, division)
    reason = "no similar kernel in the bank: tuned from scratch"
    return _plan(task, Action.TUNE, reason=reason)


def _plan(task: Task, action: Action, reason: str, **more: Any) -> TaskPlan:
    return TaskPlan(task_key=task.key, name=task.name, action=action, reason=reason, **more)


def _plan_known(task: Task, known: Known | None) -> TaskPlan:
    """Measure again what is known of the very same workload, or how it came in."""
    own = [seed for seed in known.seeds if seed.donor.task_key == task.key][:_SAME] if known else []
    notes = tuple(_note(seed, known.names) for seed in own) if known else ()
    return _plan(
        task,
        Action.CONTINUE if notes else Action.KEEP,
        reason="what is known meets the goal: measured again, nothing is searched",
        donors=notes,
        seeds=len(notes),
        quota=1 + len(notes),
    )


def _borrowing(spec: JobSpec, task: Task, known: Known, seeds: int) -> TaskPlan:
    own = [seed for seed in known.seeds if seed.donor.task_key == task.key]
    only = spec.reuse == "transfer-only"
    given = own[:_SAME] if own and only else known.seeds[:seeds]
    notes = tuple(_note(seed, known.names) for seed in given)
    return _plan(
        task,
        Action.CONTINUE if own else Action.TRANSFER,
        reason=_why_borrowed(notes, tuned_before=bool(own)),
        donors=notes,
        seeds=len(notes),
        quota=1 + len(notes) + (0 if own else max(1, len(notes) // _SEEDS_A_GUESS)) if only else None,
    )


def _why_borrowed(notes: Sequence[DonorNote], *, tuned_before: bool) -> str:
    first = notes[0]
    if tuned_before:
        return f"tuned before: starts from record {first.record}, measured on {first.device_key}"
    return (
        f"starts from {first.name} (record {first.record}, measured on {first.device_key}, "
        f"expected quality {first.expected:.2f}) and {len(notes) - 1} more"
    )


def _sharing(task: Task, cluster: TaskCluster, seeds: int, division: Division) -> TaskPlan:
    lead = cluster.representative
    if task.key == lead:
        return _plan(
            task,
            Action.REPRESENT,
            reason=f"tuned for itself and {len(cluster.members) - 1} similar kernels",
            representative=lead,
            lend_after=division.lend_after[lead],
        )
    return _plan(
        task,
        Action.FOLLOW,
        reason="starts from the best schedule of its representative, then refined",
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
