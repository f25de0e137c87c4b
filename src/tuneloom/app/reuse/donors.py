"""The store's records as donors for the tasks of one job: few, and the likely ones."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from tuneloom.app.tasks.progress import DEFAULT, SHARE, TRANSFER
from tuneloom.model import NOWHERE, Measurement, Task, Trial
from tuneloom.model.space import implementer_of
from tuneloom.store import Store, TrialRecord, WorkloadRecord
from tuneloom.transfer import Donor, nearest, same_anchor, shape_distance

Accept = Callable[[TrialRecord], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """How many workloads of a class are asked, and for how many records each."""

    workloads: int
    records: int


DONORS = Asking(workloads=6, records=3)
TEACHERS = Asking(workloads=3, records=32)
_MOST_ASKED = 32
CLEARLY = 1.06
"""How many times as fast a schedule has to be in single trials so that nobody asks for a contest."""


@dataclass(slots=True)
class DonorBank:
    """Questions of one job to the bank; the answers are bounded however large the bank is.

    Only records of the job's target family and its `relatives` are looked at, and of those only what its
    tenant, the `reader`, may learn from.
    """

    store: Store
    job: str
    family: str
    accept: Accept = lambda _record: True
    reader: str | None = None
    relatives: tuple[str, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    """What people call the workloads that gave something, by key."""
    _classes: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def donors(self, task: Task, asking: Asking = DONORS, favourite: str | None = None) -> list[Donor]:
        """Records of the task's own workload, of its favourite, and of the workloads most like it.

        What the job itself measured of the task is left out: its search knows that.
        """
        found: list[Donor] = []
        givers = 0
        for workload in self._workloads(task, favourite):
            apart = shape_distance(task.shapes, workload.shapes)
            records = self._records(workload, asking.records, apart, own_job=workload.key != task.key)
            found += records
            givers += bool(records)
            if givers == asking.workloads:
                break
        return found

    def elsewhere(self, task: Task, device_key: str, count: int) -> list[TrialRecord]:
        """The fastest tuned records of the very same kernel and device by other jobs of this run."""
        run = self.job.rpartition(".")[0]
        records = self.store.workload_trials(task.key, self.family, count)
        others = [r for r in records if r.job != self.job and r.job.rpartition(".")[0] == run]
        there = [r for r in others if r.provenance.device_key == device_key]
        return [record for record in there if record.trial.candidate.origin != DEFAULT]

    def best(self, task: Task, device_key: str, makers: Collection[str] | None = None) -> Trial | None:
        """The fastest record of the very same kernel on this device by other jobs, as a trial.

        The least of many short measurements is often one that was lucky: where records were timed side by
        side, the fastest of those counts, unless another is clearly faster. A job without a device takes
        records of any device. With `makers`, only code of these implementers counts.
        """
        records = self.store.workload_trials(task.key, self.family, _MOST_ASKED, reader=self.reader)
        others = (r for r in records if r.job != self.job)
        there = (r for r in others if device_key in (r.provenance.device_key, NOWHERE))
        tuned = (
            r
            for r in there
            if self._as_donor(r, task.gflop, 0.0) is not None
            and (makers is None or implementer_of(r.trial.candidate.configuration) in makers)
        )
        record = _fastest(list(tuned))
        if record is None:
            return None
        given = replace(record.trial.candidate, origin=f"{TRANSFER}{record.id}")
        return replace(record.trial, candidate=given)

    def refresh(self) -> None:
        """Look for classes that appeared since."""
        self._classes.clear()

    def _workloads(self, task: Task, favourite: str | None) -> list[WorkloadRecord]:
        """Workloads to ask: many have no records yet, so more than are needed."""
        known: dict[str, WorkloadRecord] = {}
        for family, kernel_class in self._classes_like(task.kernel_class):
            for workload in self.store.workloads(kernel_class, family, reader=self.reader):
                known[workload.key] = workload
                self.names[workload.key] = workload.name
        first = [key for key in (task.key, favourite) if key in known]
        others = [(key, workload.shapes) for key, workload in known.items() if key not in first]
        return [known[str(key)] for key in (*first, *nearest(task.shapes, others, _MOST_ASKED))]

    def _classes_like(self, kernel_class: str) -> Iterator[tuple[str, str]]:
        for family in (self.family, *self.relatives):
            key = family, kernel_class
            if key not in self._classes:
                every = self.store.kernel_classes(family)
                self._classes[key] = [other for other in every if same_anchor(kernel_class, other)]
            yield from ((family, other) for other in self._classes[key])

    def _records(self, workload: WorkloadRecord, count: int, apart: float, *, own_job: bool) -> list[Donor]:
        records = self.store.workload_trials(workload.key, workload.family, 2 * count, reader=self.reader)
        wanted = [record for record in records if own_job or record.job != self.job]
        found = (self._as_donor(record, workload.gflop, apart) for record in wanted)
        return [donor for donor in found if donor is not None][:count]

    def _as_donor(self, record: TrialRecord, gflop: float, apart: float) -> Donor | None:
        outcome, candidate = record.trial.outcome, record.trial.candidate
        if candidate.origin == DEFAULT or not isinstance(outcome, Measurement) or not self.accept(record):
            return None
        if not outcome.best_s > 0:  # damaged: no number
            return None
        own = record.job == self.job
        return Donor(
            record=record.id,
            task_key=record.task_key,
            kernel_class=record.kernel_class,
            gflop=gflop,
            seconds=outcome.best_s,
            device_key=record.provenance.device_key,
            origin=f"{SHARE}{record.task_key}" if own else f"{TRANSFER}{record.id}",
            trace=candidate.configuration,
            apart=apart,
        )


def _fastest(records: Sequence[TrialRecord]) -> TrialRecord | None:
    fastest = min(records, key=lambda r: r.seconds or inf, default=None)
    met = [record for record in records if record.contest_s is not None]
    winner = min(met, key=lambda r: r.contest_s or inf, default=None)
    if fastest is None or winner is None:
        return fastest
    lucky = CLEARLY * (fastest.seconds or inf) >= min(winner.contest_s or inf, winner.seconds or inf)
    return winner if lucky else fastest
