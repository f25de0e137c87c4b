"""Jobs of tenants in the database: submitted once, listed by pages."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from tuneloom.errors import ConflictError, ModelError, QuotaError
from tuneloom.store.database.encoding import from_json, from_row
from tuneloom.store.database.queries import given, insert_or_replace
from tuneloom.store.database.tables import BUNDLES, JOBS, LEASES, MODELS, SUBMISSIONS, TRIALS, VIEWS
from tuneloom.store.files.blobs import add_use
from tuneloom.store.records import JobStatus, Json, RunStatus
from tuneloom.store.running.jobs import insert_job
from tuneloom.store.running.leases import is_dead
from tuneloom.store.running.runs import RunQueries, owner_of
from tuneloom.store.tenancy.models import is_model
from tuneloom.store.tenancy.records import AuditEntry, BundleRecord, Submission, SubmittedJob, TenantLimits
from tuneloom.store.tenancy.tenants import asked_of, locked_limits
from tuneloom.store.tenancy.watching import insert_entry

COMMAND = "service"
_OF_JOB = ("name", "status", "spec", "result", "started", "ended")
_JOINED = select(SUBMISSIONS, *(JOBS.c[name] for name in _OF_JOB)).select_from(
    SUBMISSIONS.join(JOBS, JOBS.c.run == SUBMISSIONS.c.run)
)
_OF_TRIAL = ("id", "task_key", "outcome", "best_s", "build_s", "profile_s", "created", "origin")


class SubmissionQueries(RunQueries):
    """Jobs of tenants. Each is a run of its own."""

    def submit_job(
        self, submission: Submission, options: Mapping[str, Json], entry: AuditEntry | None = None
    ) -> tuple[SubmittedJob, bool]:
        """Leave a job for an executor and say whether it is new; all is written or nothing.

        Its files belong to its run from then on. With an `entry`, a new job is noted in the audit log; its
        id becomes the subject.

        The same idempotency key and request give the job that is there already. Raises
        ConflictError for a key that was used for another request, QuotaError if the tenant
        may not submit more.
        """
        with self._database.writing() as connection:
            limits = locked_limits(connection, submission.tenant)
            earlier = _earlier(connection, submission)
            if earlier is not None:
                return earlier, False
            self._require_quota(connection, submission, limits)
            _require_models(connection, submission)
            run = self._insert(connection, COMMAND, options, RunStatus.WAITING)
            insert_job(connection, run, submission.name, submission.spec, self._clock())
            connection.execute(insert(SUBMISSIONS).values(run=run, **self._columns(submission)))
            for digest in _files(submission):
                add_use(connection, digest, owner_of(run))
            if entry is not None:
                insert_entry(connection, replace(entry, subject=run), self._clock())
            return _submitted(connection.execute(_JOINED.where(SUBMISSIONS.c.run == run)).one()), True

    def submitted_job(self, run: str, tenant: str | None = None) -> SubmittedJob | None:
        """A job by the name of its run, if it is this tenant's; None for `tenant` means anybody's."""
        query = _JOINED.where(SUBMISSIONS.c.run == run, *given(SUBMISSIONS.c.tenant, tenant))
        return self._found(query, _submitted)

    def submitted_jobs(
        self,
        tenant: str | None = None,
        *,
        statuses: Sequence[JobStatus] = (),
        model: str | None = None,
        name: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[SubmittedJob]:
        """A page of jobs, newest first; `name` is a part of the name."""
        wanted = [*given(SUBMISSIONS.c.tenant, tenant), *given(SUBMISSIONS.c.model, model)]
        if statuses:
            wanted.append(JOBS.c.status.in_([status.value for status in statuses]))
        if name is not None:
            wanted.append(JOBS.c.name.contains(name, autoescape=True))
        if before is not None:
            wanted.append(SUBMISSIONS.c.number < before)
        query = _JOINED.where(*wanted).order_by(SUBMISSIONS.c.number.desc()).limit(limit)
        return [_submitted(row) for row in self._all(query)]

    def job_counts(self, tenant: str | None = None) -> dict[str, int]:
        """How many jobs there are by status, of one tenant or of all."""
        joined = SUBMISSIONS.join(JOBS, JOBS.c.run == SUBMISSIONS.c.run)
        query = select(JOBS.c.status, func.count().label("total")).select_from(joined)
        query = query.where(*given(SUBMISSIONS.c.tenant, tenant)).group_by(JOBS.c.status)
        return {row.status: row.total for row in self._all(query)}

    def trials_after(self, job: str, after: int, limit: int) -> list[dict[str, Json]]:
        """Trials of a job committed after the one with this id, as small plain data."""
        columns = [TRIALS.c[name] for name in _OF_TRIAL]
        query = select(*columns).where(TRIALS.c.job == job, TRIALS.c.id > after)
        return [dict(row._mapping) for row in self._all(query.order_by(TRIALS.c.id).limit(limit))]

    def last_trial(self, job: str) -> int:
        """The id of the trial of a job that was committed last, 0 if there is none."""
        query = select(func.coalesce(func.max(TRIALS.c.id), 0)).where(TRIALS.c.job == job)
        return int(self._value(query))

    def outcome_counts(self) -> dict[str, int]:
        """How many trials there are by outcome: `ok`, or the kind of failure."""
        query = select(TRIALS.c.outcome, func.count().label("total")).group_by(TRIALS.c.outcome)
        return {row.outcome: row.total for row in self._all(query)}

    def live_views(self) -> list[tuple[str, Mapping[str, Json]]]:
        """The views of runs whose leases stand, with the holders of these, oldest view first."""
        held = VIEWS.join(LEASES, LEASES.c.run == VIEWS.c.run)
        query = select(LEASES, VIEWS.c.content).select_from(held).order_by(VIEWS.c.updated)
        with self._database.reading() as connection:
            lively = connection.execute(query.where(LEASES.c.expires > self._now(connection))).all()
        dead = {row.holder for row in {row.holder: row for row in lively}.values() if is_dead(row)}
        return [(row.holder, from_json(row.content)) for row in lively if row.holder not in dead]

    def keep_bundle(self, run: str, digest: str, size_bytes: int) -> None:
        """Note the bundle of a run that we carry out, replacing an earlier one."""
        row = {"run": run, "digest": digest, "size_bytes": size_bytes, "created": self._clock()}
        with self._database.writing() as connection:
            self._guard(connection, run)
            insert_or_replace(connection, BUNDLES, row, ("run",))

    def bundle(self, run: str) -> BundleRecord | None:
        """The bundle of a run, if it has one."""
        query = select(BUNDLES).where(BUNDLES.c.run == run)
        return self._found(query, lambda row: from_row(BundleRecord, row))

    def _require_quota(self, connection: Connection, submission: Submission, limits: TenantLimits) -> None:
        jobs, trials = asked_of(connection, submission.tenant, self._clock())
        if jobs >= limits.jobs_at_once:
            raise QuotaError(
                f"tenant {submission.tenant!r} has {jobs} jobs that have not ended, and may have "
                f"{limits.jobs_at_once}; wait for one to end, or cancel one",
                field="jobs_at_once",
            )
        if trials + submission.trials > limits.trials_a_day:
            left = max(0, limits.trials_a_day - trials)
            raise QuotaError(
                f"tenant {submission.tenant!r} may ask for {left} more trials today, not for "
                f"{submission.trials}; give a smaller budget",
                field="trials",
            )

    def _columns(self, submission: Submission) -> dict[str, Any]:
        return {
            "tenant": submission.tenant,
            "token": submission.token,
            "model": submission.model,
            "trials": submission.trials,
            "priority": int(submission.spec.get("priority", 0)),
            "created": self._clock(),
            "idempotency_key": submission.key,
            "request": submission.request,
        }


def _files(submission: Submission) -> list[str]:
    """The digests of the files that a job needs."""
    return list(submission.spec.get("files", {}).values())


def _require_models(connection: Connection, submission: Submission) -> None:
    """Raise ModelError if a model was removed since the job was checked; none is until we commit."""
    for digest in _files(submission):
        query = select(MODELS.c.digest).where(is_model(submission.tenant, digest))
        if connection.execute(query).first() is None:
            raise ModelError(f"no model with digest {digest[:12]}…; upload it first", field="model")


def _earlier(connection: Connection, submission: Submission) -> SubmittedJob | None:
    """The job that the same key was used for."""
    if submission.key is None:
        return None
    same = (SUBMISSIONS.c.tenant == submission.tenant) & (SUBMISSIONS.c.idempotency_key == submission.key)
    row = connection.execute(_JOINED.where(same)).first()
    if row is not None and row.request != submission.request:
        raise ConflictError(
            f"this idempotency key was used for another request, job {row.run}; use a new key",
            field="Idempotency-Key",
        )
    return None if row is None else _submitted(row)


def _submitted(row: Row[Any]) -> SubmittedJob:
    return from_row(
        SubmittedJob,
        row,
        id=row.run,
        status=JobStatus(row.status),
        spec=from_json(row.spec),
        result=from_json(row.result),
    )
