"""Never tune twice, as one job sees it: its plan, its seeds, and what its gifts were worth."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from tuneloom.app.reuse.donors import TEACHERS, DonorBank
from tuneloom.app.reuse.gifts import Gifts, Hints, gifts_of, of_others
from tuneloom.app.reuse.planning import (
    BORROWING_MODES,
    SHARING_MODES,
    Action,
    JobPlan,
    Known,
    TaskPlan,
    make_plan,
)
from tuneloom.app.tasks.progress import TaskProgress, record_of
from tuneloom.model import NOWHERE, JobSpec, SearchOptions, Seed, Task, TaskSpace, Trial
from tuneloom.store import RunStatus, Store, TrialRecord
from tuneloom.transfer import Donor, FittedSeed, Form, best_sketch, fitted_seeds, form_of, lessons_for

_PLANNED = 8  # seeds looked at for a plan
_RUNS, _ENOUGH_TRIALS = 20, 20
_IMPORTS = ("import", "bank")  # commands that add records without measuring


def follow(plan: JobPlan, tasks: Sequence[TaskProgress]) -> None:
    """Let tasks wait, share and end as planned."""
    by_key = {progress.task.key: progress for progress in tasks}
    for progress in tasks:
        own = plan.of(progress.task.key)
        progress.lend_after, progress.quota = own.lend_after, own.quota
        if own.representative not in (None, own.task_key):
            progress.waits_for = by_key.get(str(own.representative))


def _number(job: str) -> int:
    """How many jobs of its run came before it."""
    number = job.rpartition(".")[2]
    return max(0, int(number) - 1) if number.isdecimal() else 0


class JobReuse:
    """Asks the bank for one job; used by the thread that conducts the run.

    Records of other jobs count from the moment they are committed, also of jobs that run
    at the same time.
    """

    def __init__(self, store: Store, job: str, spec: JobSpec, reader: str | None = None) -> None:
        """`reader` is the tenant of the job, who may not learn from everybody."""
        self._reader = reader
        self._store = store
        self._job = job
        self._spec = spec
        self._bank = DonorBank(store, job, "", reader=reader)
        self._spaces: dict[str, TaskSpace] = {}
        self._asked: dict[str, list[Donor]] = {}
        self._gifts = self._new_gifts()
        self._foreign: dict[str, list[FittedSeed]] = {}
        self.job_plan: JobPlan | None = None
        self._planned_s = 0.0

    @property
    def wanted(self) -> bool:
        """Whether spaces are needed at all."""
        return self._spec.reuse != "off"

    def look(
        self, families: Sequence[str], tasks: Sequence[Task], spaces: Sequence[TaskSpace]
    ) -> dict[str, list[Donor]]:
        """Take the spaces in; returns donors, by task, whose schedules have a form no space offers.

        `families` are the target's own and those whose records may start a search, too.
        """
        self.ask(*families)
        self._asked = {task.key: self._bank.donors(task) for task in tasks}
        self._spaces = {space.task_key: space for space in spaces}
        if self._spec.reuse not in BORROWING_MODES:
            return {}
        found = {task.key: self._formless(task) for task in tasks}
        return {key: donors for key, donors in found.items() if donors}

    def ask(self, family: str, *relatives: str) -> None:
        """Ask for records of the target's family from now on, and of those that may start a search, too."""
        self._bank = DonorBank(
            self._store, self._job, family, self._accept(), self._reader, relatives=relatives
        )
        self._gifts = self._new_gifts()

    def take_foreign(self, task_key: str, donor: Donor, configurations: Sequence[str]) -> None:
        """A foreign schedule was fitted as a whole: it is a seed, too."""
        seeds = [Seed(origin=donor.origin, configuration=text) for text in configurations]
        fitted = [FittedSeed(seed=seed, donor=donor, expected=0.5) for seed in seeds]
        self._foreign.setdefault(task_key, []).extend(fitted)

    def known_s(self, tasks: Sequence[Task]) -> float | None:
        """What the model takes by the best records of its kernels on this device; None if one has none."""
        times = [self._best_known_s(task) for task in tasks]
        if any(seconds is None for seconds in times):
            return None
        return sum(task.weight * (seconds or 0.0) for task, seconds in zip(tasks, times, strict=True))

    def best_known(self, task: Task, makers: Collection[str] | None = None) -> Trial | None:
        """The best record of the very same kernel on this device, by one of these implementers if given.

        A job that makes no trials takes records of any device of the family.
        """
        lends = self._spec.reuse in BORROWING_MODES and bool(self._bank.family)
        device = self._spec.device_key if self._spec.budget.trials else NOWHERE
        return self._bank.best(task, device, makers) if lends else None

    def same_kernels(self, known: Mapping[str, Trial]) -> frozenset[tuple[str, str]]:
        """Keys of tasks with the origins of gifts that were measured on the very same kernel and device.

        `known` are more of these, by the key of their task.
        """
        there = (donor for donor in self._gifts.donors.values() if donor.device_key == self._spec.device_key)
        given = {(donor.task_key, donor.origin) for donor in there}
        return frozenset(given | {(key, trial.candidate.origin) for key, trial in known.items()})

    def _best_known_s(self, task: Task) -> float | None:
        donors = self._asked.get(task.key, ())
        same = [d for d in donors if d.task_key == task.key and d.device_key == self._spec.device_key]
        return min((donor.seconds for donor in same), default=None)

    def plan(self, tasks: Sequence[Task], *, keep: bool = True, known_suffices: bool = False) -> JobPlan:
        """Decide, and keep the plan with every task."""
        known = {task.key: self._known(task) for task in tasks}
        spaces = [self._spaces[task.key] for task in tasks] if self._spaces else []
        self._planned_s = time.monotonic()
        self.job_plan = make_plan(
            self._spec, tasks, spaces, known, self._seconds_per_trial(), known_suffices=known_suffices
        )
        for plan in self.job_plan.tasks if keep else ():
            self._store.set_plan(self._job, plan.task_key, plan.to_json())
        return self.job_plan

    def prepare(self, progress: TaskProgress) -> int:
        """Find the seeds of a task that is about to start; returns how many there are."""
        task = progress.task
        plan = self._plan_of(task)
        if plan is None or plan.action is Action.KEEP or task.key not in self._spaces:
            return 0
        return self._gifts.first(
            task,
            self._spaces[task.key],
            plan.seeds or _PLANNED // 2,
            plan.representative,
            self._foreign.get(task.key, ()),
        )

    def knows(self, task: Task) -> bool:
        """Whether what a task starts from was measured on the very same kernel."""
        plan = self._plan_of(task)
        return plan is not None and plan.action is Action.CONTINUE

    def look_for_news(self, progress: TaskProgress) -> None:
        """Let a task that was given its first gifts hear what others found since."""
        key = progress.task.key
        plan = self._plan_of(progress.task)
        if plan is not None and key in self._spaces and self._spec.reuse != "transfer-only":
            self._gifts.news(progress, self._spaces[key], plan.representative)

    def collect(self, progress: TaskProgress) -> Hints:
        """What waits for a search that is open already, once."""
        return self._gifts.collect(progress.task.key)

    def options(self, progress: TaskProgress, base: SearchOptions) -> SearchOptions:
        """What the search of a task begins with; jobs of one run search differently."""
        if not self.wanted:
            return base
        only = self._spec.reuse == "transfer-only"
        if not progress.waits:
            self.prepare(progress)
        seeds = self._gifts.begin(progress.task.key)
        space = self._spaces.get(progress.task.key)
        lessons = lessons_for(space, self._bank.donors(progress.task, TEACHERS)) if space and not only else []
        seed = base.seed + _number(self._job)
        return replace(base, seed=seed, seeds=seeds, lessons=tuple(lessons), only_seeds=only)

    def keep_contests(self, contests: Mapping[str, Sequence[tuple[float, Trial]]]) -> None:
        """Note what schedules took side by side, by the key of their task: later jobs choose by that.

        Records of others are theirs: a tenant's job notes nothing of a contest in which one took part.
        """
        found: dict[int, float] = {}
        for key, met in contests.items():
            own = {record.trial.candidate.key: record.id for record in self._store.trials(self._job, key)}
            ids = [own.get(trial.candidate.key) or record_of(trial.candidate.origin) for _, trial in met]
            if self._reader is None or all(number in own.values() for number in ids):
                seconds = (each for each, _ in met)
                found |= {n: s for n, s in zip(ids, seconds, strict=True) if n is not None}
        if found:
            self._store.keep_contests(self._job, found)

    def settle(self, tasks: Sequence[TaskProgress], used: Mapping[str, str]) -> None:
        """Note with every task what its gifts were worth; `used` are candidates in the final model."""
        every: list[dict[str, Any]] = []
        for progress in tasks:
            plan = self._plan_of(progress.task)
            used_here = used.get(progress.task.key, "")
            gifts = gifts_of(progress, used_here, self._gifts.donors, self._bank.names)
            every += gifts
            if plan is not None and gifts:
                self._store.set_plan(self._job, progress.task.key, plan.to_json() | {"gifts": gifts})
        if every:
            self._note(every, sum(len(progress.trials) for progress in tasks))

    def _note(self, gifts: Sequence[Mapping[str, Any]], spent: int) -> None:
        """Tell in the run's report what reuse saved, against spending the whole budget."""
        run, name = self._job.rpartition(".")[0], self._spec.name
        told = f"schedules borrowed: {len(gifts)}, in use: {sum(gift['used'] for gift in gifts)}"
        left = self._spec.budget.trials - spent
        if left > 0 and spent:
            saved_s = left * (time.monotonic() - self._planned_s) / spent
            told += f"; {left} of {self._spec.budget.trials} trials saved, about {saved_s:.0f} s"
        notes = self._store.notes(run).get("reuse", {})
        self._store.set_note(run, "reuse", {**notes, name: told})

    def _plan_of(self, task: Task) -> TaskPlan | None:
        return None if self.job_plan is None else self.job_plan.of(task.key)

    def _known(self, task: Task) -> Known:
        if not self.wanted or task.key not in self._spaces:
            return Known(names={})
        found, _ = fitted_seeds(self._spaces[task.key], of_others(self._asked[task.key]), _PLANNED)
        seeds = (*found, *self._foreign.get(task.key, ()))[:_PLANNED]
        return Known(seeds=seeds, names=self._bank.names)

    def _new_gifts(self) -> Gifts:
        return Gifts(self._bank, self._spec.device_key, within_job=self._spec.reuse in SHARING_MODES)

    def _formless(self, task: Task) -> list[Donor]:
        space = self._spaces[task.key]
        asked = self._asked[task.key] if space.sketches else []  # or its space is not known
        donors = [donor for donor in asked if donor.task_key != task.key]
        forms = [(donor, form_of(donor.trace)) for donor in donors]
        return [d for d, form in forms if isinstance(form, Form) and best_sketch(space, form) is None]

    def _accept(self) -> Any:
        if self._spec.reuse != "share":
            return lambda _record: True
        living = {run.id for run in self._store.runs(_RUNS) if run.status is RunStatus.RUNNING}

        def runs_now(record: TrialRecord) -> bool:
            return record.job.rpartition(".")[0] in living

        return runs_now

    def _seconds_per_trial(self) -> float | None:
        """What a trial took in earlier runs, all in all."""
        runs = [run for run in self._store.runs(_RUNS) if run.trials >= _ENOUGH_TRIALS]
        tuned = [run for run in runs if not run.command.startswith(_IMPORTS)]
        times = [(run.ended - run.created) / run.trials for run in tuned if run.ended]
        return median(times) if times else None
