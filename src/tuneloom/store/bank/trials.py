"""Trials of jobs in the database."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import Connection, func, select

from tuneloom.errors import StoreError
from tuneloom.model import Measurement, Outcome, Trial
from tuneloom.store.bank.trial_rows import OK, RECORDS, record_of
from tuneloom.store.database.encoding import pack_text, printable, to_json
from tuneloom.store.database.queries import Queries, insert_all_once, insert_once
from tuneloom.store.database.tables.runs import PROVENANCES, TASKS, TRIALS
from tuneloom.store.records import EMPTY, Provenance, TrialRecord


class TrialQueries(Queries):
    """The part of `TrialStore` that a running job uses."""

    def add_trial(
        self,
        job: str,
        task_key: str,
        trial: Trial,
        provenance: Provenance,
        *,
        build_s: float = 0.0,
        features: Mapping[str, float] = EMPTY,
    ) -> bool:
        with self._database.writing() as connection:
            shared = self._shared(connection, job, task_key, provenance)
            extra = {"build_s": build_s, "features": to_json(dict(features))}
            return insert_once(connection, TRIALS, _columns(trial) | shared | extra)

    def add_trials(self, job: str, task_key: str, trials: Sequence[Trial], provenance: Provenance) -> int:
        with self._database.writing() as connection:
            shared = self._shared(connection, job, task_key, provenance)
            return insert_all_once(connection, TRIALS, [_columns(trial) | shared for trial in trials])

    def trials(self, job: str, task_key: str | None = None) -> list[TrialRecord]:
        query = RECORDS.where(TRIALS.c.job == job).order_by(TRIALS.c.id)
        if task_key is not None:
            query = query.where(TRIALS.c.task_key == task_key)
        with self._database.reading() as connection:
            return [record_of(row) for row in connection.execute(query)]

    def trial_count(self, job: str) -> int:
        query = select(func.count()).where(TRIALS.c.job == job)
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def _shared(
        self, connection: Connection, job: str, task_key: str, provenance: Provenance
    ) -> dict[str, Any]:
        self._guard(connection, job.rpartition(".")[0])
        ours = (TASKS.c.job == job) & (TASKS.c.task_key == task_key)
        kernel_class = connection.execute(select(TASKS.c.kernel_class).where(ours)).scalar()
        if kernel_class is None:
            raise StoreError(f"job {job} has no task {task_key!r}: add its tasks before its trials")
        return {
            "job": job,
            "task_key": task_key,
            "kernel_class": kernel_class,
            "family": provenance.family,
            "provenance": _provenance_id(connection, provenance),
            "created": self._clock(),
        }


def _provenance_id(connection: Connection, provenance: Provenance) -> int:
    columns = asdict(provenance)
    query = select(PROVENANCES.c.id).filter_by(**columns)
    known = connection.execute(query).scalar()
    if known is None:
        insert_once(connection, PROVENANCES, columns)
        known = connection.execute(query).scalar_one()
    return int(known)


def _columns(trial: Trial) -> dict[str, Any]:
    candidate = trial.candidate
    return {
        "candidate": candidate.key,
        "configuration": pack_text(candidate.configuration),
        "origin": printable(candidate.origin),
        "build_s": 0.0,
        "features": "{}",
        **_outcome_columns(trial.outcome),
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
