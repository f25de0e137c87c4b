"""Trials of jobs in the database."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from tuneloom.errors import StoreError
from tuneloom.model import Measurement, Outcome, Trial
from tuneloom.store.bank.trial_rows import CONTEST, OK, RECORDS, kept_features, record_of
from tuneloom.store.database.encoding import from_json, pack_text, printable, to_json
from tuneloom.store.database.queries import Queries, given, insert_all_once, insert_new, insert_once
from tuneloom.store.database.tables import PROVENANCES, TASKS, TRIALS
from tuneloom.store.records import KeptTrial, Provenance, TrialRecord

_SAME_PROVENANCE = select(PROVENANCES.c.id).where(
    *(PROVENANCES.c[each.name] == bindparam(each.name) for each in fields(Provenance))
)


class TrialQueries(Queries):
    """Trials of running jobs."""

    def add_trial(self, job: str, task_key: str, trial: Trial, provenance: Provenance, **build: Any) -> bool:
        """Commit a trial of a task added before; False if the job has this candidate already.

        `build` is what its build told: `build_s` and `features`.
        """
        kept = KeptTrial(job=job, task_key=task_key, trial=trial, provenance=provenance, **build)
        return self.add_all_trials([kept]) == 1

    def add_trials(self, job: str, task_key: str, trials: Sequence[Trial], provenance: Provenance) -> int:
        """Commit many trials of one task at once (an import); returns how many were new."""
        return self.add_all_trials(
            [KeptTrial(job=job, task_key=task_key, trial=trial, provenance=provenance) for trial in trials]
        )

    def add_all_trials(self, kept: Sequence[KeptTrial]) -> int:
        """Commit trials of any tasks at once; raises LeaseLost if another executor has their run."""
        with self._database.writing() as connection:
            for run in {each.run: None for each in kept}:
                self._guard(connection, run)
            return insert_all_once(connection, TRIALS, self._rows(connection, kept))

    def keep_trials(self, kept: Sequence[KeptTrial]) -> list[str]:
        """Commit trials of any runs in one transaction; those of runs that were lost are left out.

        Returns the runs that were lost, as `write_pages` does. When this returns, the others survive
        anything; if it raises, none was committed.
        """
        with self._database.writing() as connection:
            lost = self._lost(connection, {each.run: None for each in kept})
            rows = self._rows(connection, [each for each in kept if each.run not in lost])
            insert_new(connection, TRIALS, rows)
        return sorted(lost)

    def keep_contests(self, job: str, seconds: Mapping[int, float]) -> None:
        """Note with records, by id, what they took when a job measured the best of a kernel side by side."""
        known = select(TRIALS.c.id, TRIALS.c.features).where(TRIALS.c.id.in_(seconds))
        with self._database.writing() as connection:
            self._guard(connection, job.rpartition(".")[0])
            for row in connection.execute(known).all():
                told = to_json(from_json(row.features) | {CONTEST: seconds[row.id]})
                connection.execute(update(TRIALS).where(TRIALS.c.id == row.id).values(features=told))

    def trials(self, job: str, task_key: str | None = None) -> list[TrialRecord]:
        """The trials of a job, or of one task of it, in the order in which they were committed."""
        query = RECORDS.where(TRIALS.c.job == job, *given(TRIALS.c.task_key, task_key)).order_by(TRIALS.c.id)
        return [record_of(row) for row in self._all(query)]

    def trial_count(self, job: str) -> int:
        """How many trials of the job are committed, failures among them."""
        query = select(func.count()).where(TRIALS.c.job == job)
        return int(self._value(query))

    def _rows(self, connection: Connection, kept: Sequence[KeptTrial]) -> list[dict[str, Any]]:
        """What is told of trials in their table; tasks and provenances are looked up once each."""
        classes = _kernel_classes(connection, kept)
        provenances = {each.provenance: 0 for each in kept}
        for origin in provenances:
            provenances[origin] = _provenance_id(connection, origin)
        now = self._clock()
        return [
            {
                "job": each.job,
                "task_key": each.task_key,
                "kernel_class": classes[each.job, each.task_key],
                "family": each.provenance.family,
                "provenance": provenances[each.provenance],
                "created": now,
                **_columns(each),
            }
            for each in kept
        ]


def _kernel_classes(connection: Connection, kept: Sequence[KeptTrial]) -> dict[tuple[str, str], str]:
    """The kernel classes of the tasks of trials; raises StoreError if a job has no such task."""
    wanted = {(each.job, each.task_key): None for each in kept}
    jobs, keys = {job for job, _ in wanted}, {key for _, key in wanted}
    query = select(TASKS.c.job, TASKS.c.task_key, TASKS.c.kernel_class)
    rows = connection.execute(query.where(TASKS.c.job.in_(jobs), TASKS.c.task_key.in_(keys)))
    classes = {(row.job, row.task_key): row.kernel_class for row in rows}
    for job, key in wanted:
        if (job, key) not in classes:
            raise StoreError(f"job {job} has no task {key!r}: add its tasks before its trials")
    return classes


def _provenance_id(connection: Connection, provenance: Provenance) -> int:
    columns = asdict(provenance)
    known = connection.execute(_SAME_PROVENANCE, columns).scalar()
    if known is None:
        insert_once(connection, PROVENANCES, columns)
        known = connection.execute(_SAME_PROVENANCE, columns).scalar_one()
    return int(known)


def _columns(kept: KeptTrial) -> dict[str, Any]:
    candidate = kept.trial.candidate
    return {
        "candidate": candidate.key,
        "configuration": pack_text(candidate.configuration),
        "origin": printable(candidate.origin),
        "build_s": kept.build_s,
        "features": to_json(kept_features(kept.features, kept.trial)),
        **_outcome_columns(kept.trial.outcome),
    }


def _outcome_columns(outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, Measurement):
        seconds = to_json(list(outcome.seconds))
        times = {"seconds": seconds, "best_s": outcome.best_s, "profile_s": outcome.profile_s}
        return {"outcome": OK, "message": "", **times}
    message = printable(outcome.message)
    return {
        "outcome": outcome.kind.value,
        "message": message,
        "seconds": "[]",
        "best_s": None,
        "profile_s": 0.0,
    }
