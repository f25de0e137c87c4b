"""What tasks are given while a job goes on, and what that was worth."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tuneloom.app.reuse.donors import DonorBank
from tuneloom.app.tasks.progress import SHARE, TaskProgress, is_borrowed
from tuneloom.model import Seed, Task, TaskSpace, Trial
from tuneloom.transfer import Donor, FittedSeed, fitted_seeds

_NEWS = 2  # of one batch; the rest is the search's own
_LOOKED_AT = 16
_WITNESSED = 64

Point = tuple[int | None, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hints:
    """What a search gets with its next batch: seeds to try, and trials of its kernel that others made."""

    seeds: tuple[Seed, ...] = ()
    witnessed: tuple[Trial, ...] = ()


@dataclass(slots=True)
class _Account:
    """What one task was given: `first` before its search, `hints` is not collected yet."""

    first: tuple[FittedSeed, ...] | None = None
    hints: Hints = field(default_factory=Hints)
    points: set[Point] = field(default_factory=set)
    newest: int = 0
    heard: int = 0


class Gifts:
    """Keeps an account for every task, so that nothing is given twice.

    Without `within_job` only other jobs give. `donors` are those who gave, by the origin of
    their gifts.
    """

    def __init__(self, bank: DonorBank, device_key: str, *, within_job: bool) -> None:
        self._bank = bank
        self._device_key = device_key
        self._within_job = within_job
        self._accounts: dict[str, _Account] = {}
        self.donors: dict[str, Donor] = {}

    def first(
        self,
        task: Task,
        space: TaskSpace,
        count: int,
        favourite: str | None,
        foreign: Sequence[FittedSeed] = (),
    ) -> int:
        """Find what a task starts from, unless that was done; returns how many seeds it has."""
        account = self._account(task.key)
        if account.first is None:
            found = self._fresh(account, task, favourite)
            fitted, _ = fitted_seeds(space, found, count, favourite)
            account.first = (*fitted, *foreign)[:count]
            account.hints = Hints(seeds=tuple(fit.seed for fit in account.first))
            self._note(account, account.first)
        return len(account.first)

    def news(self, progress: TaskProgress, space: TaskSpace, favourite: str | None) -> None:
        """Add to the next hints of a task what others found since it was last given something."""
        task, account = progress.task, self._account(progress.task.key)
        better = [d for d in self._fresh(account, task, favourite) if beats(d, progress)]
        fitted, _ = fitted_seeds(space, better, _LOOKED_AT, favourite)
        new = [fit for fit in fitted if _point(fit) not in account.points][:_NEWS]
        self._note(account, new)
        told = self._witnessed(account, task, {fit.donor.record for fit in new})
        account.hints = Hints(
            seeds=(*account.hints.seeds, *(fit.seed for fit in new)),
            witnessed=(*account.hints.witnessed, *told),
        )

    def collect(self, key: str) -> Hints:
        """What waits for a search that is open already, once."""
        account = self._account(key)
        hints, account.hints = account.hints, Hints()
        return hints

    def begin(self, key: str) -> tuple[Seed, ...]:
        """All first gifts of a task, for a search that is opened with them."""
        account = self._account(key)
        account.hints = Hints()
        return tuple(fit.seed for fit in account.first or ())

    def _account(self, key: str) -> _Account:
        return self._accounts.setdefault(key, _Account())

    def _fresh(self, account: _Account, task: Task, favourite: str | None) -> list[Donor]:
        self._bank.refresh()
        donors = self._bank.donors(task, favourite=favourite)
        fresh = [donor for donor in donors if donor.record > account.newest]
        account.newest = max((donor.record for donor in donors), default=account.newest)
        return fresh if self._within_job else of_others(fresh)

    def _note(self, account: _Account, fitted: Sequence[FittedSeed]) -> None:
        account.points |= {_point(fit) for fit in fitted}
        self.donors |= {fit.seed.origin: fit.donor for fit in fitted}

    def _witnessed(self, account: _Account, task: Task, given: set[int]) -> list[Trial]:
        """Trials of the very same kernel on the same device by other jobs of this run, not told before."""
        records = self._bank.elsewhere(task, self._device_key, _WITNESSED)
        new = [record for record in records if record.id > account.heard]
        account.heard = max((record.id for record in records), default=account.heard)
        return [record.trial for record in new if record.id not in given]


def of_others(donors: Sequence[Donor]) -> list[Donor]:
    """Donors that are not of the job itself."""
    return [donor for donor in donors if not donor.origin.startswith(SHARE)]


def beats(donor: Donor, progress: TaskProgress) -> bool:
    """Whether a donor is faster than the task's own best: in seconds for the same kernel, else in rate."""
    task, best_s = progress.task, progress.best_s
    if best_s is None:
        return True
    if donor.task_key == task.key:
        return donor.seconds < best_s
    return donor.gflop / donor.seconds > task.gflop / best_s > 0


def _point(fit: FittedSeed) -> Point:
    return fit.seed.sketch, fit.seed.decisions or fit.seed.configuration


def gifts_of(
    progress: TaskProgress, used: str, donors: Mapping[str, Donor], names: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The best of what every donor gave to a task; `used` is the candidate in the final model."""
    gifts: dict[str, dict[str, Any]] = {}
    for trial in progress.trials:
        origin = trial.candidate.origin
        if not is_borrowed(origin) or trial.seconds is None:
            continue
        gift = gifts.setdefault(origin, _gift(origin, donors.get(origin), names))
        gift["after_s"] = min(trial.seconds, gift["after_s"] or trial.seconds)
        gift["used"] = gift["used"] or trial.candidate.key == used
    return list(gifts.values())


def _gift(origin: str, donor: Donor | None, names: Mapping[str, str]) -> dict[str, Any]:
    told = {"donor": origin.partition(":")[2], "source": origin, "after_s": None, "used": False}
    if donor is None:
        return told
    if origin.startswith(SHARE):
        return told | {"source": "this job"}
    named = names.get(donor.task_key, donor.task_key)
    return told | {"donor": named, "source": f"record {donor.record}, measured on {donor.device_key}"}
