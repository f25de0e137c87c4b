"""Uploaded models in the database, and what is old enough to be removed and needed by nobody."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, delete, func, insert, select, update

from tuneloom.errors import ConflictError, QuotaError
from tuneloom.store.database.encoding import from_json, from_row, printable, to_json
from tuneloom.store.database.queries import Queries
from tuneloom.store.database.tables import (
    BUNDLES,
    EVENTS,
    JOBS,
    LEASES,
    MODELS,
    RUNS,
    SPANS,
    SUBMISSIONS,
    VIEWS,
)
from tuneloom.store.records import Json, RunStatus
from tuneloom.store.tenancy.records import BundleRecord, ModelRecord, ModelState
from tuneloom.store.tenancy.tenants import GOING_ON, locked_limits, usage_of


class ModelQueries(Queries):
    """Models that tenants uploaded; their files are blobs."""

    def add_model(self, tenant: str, digest: str, name: str, size_bytes: int) -> ModelRecord:
        """Note an uploaded model, once; raises QuotaError if the tenant has no room for it."""
        row = {"tenant": tenant, "digest": digest, "name": printable(name), "size_bytes": size_bytes}
        row |= {"created": self._clock(), "state": ModelState.CHECKING.value, "summary": "{}"}
        with self._database.writing() as connection:
            limits = locked_limits(connection, tenant)
            known = connection.execute(select(MODELS).where(is_model(tenant, digest))).first()
            if known is not None:
                return model_of(known)
            used = usage_of(connection, tenant, self._clock()).size_bytes
            if used + size_bytes > limits.bytes_stored:
                raise QuotaError(
                    f"{size_bytes} bytes more would exceed the {limits.bytes_stored} that tenant {tenant!r} "
                    "may store; remove models or bundles",
                    field="bytes_stored",
                )
            connection.execute(insert(MODELS).values(**row))
            return model_of(connection.execute(select(MODELS).where(is_model(tenant, digest))).one())

    def describe_model(
        self, tenant: str, digest: str, state: ModelState, summary: Mapping[str, Json]
    ) -> None:
        """Keep what was found in a model."""
        change = {"state": state.value, "summary": to_json(dict(summary))}
        with self._database.writing() as connection:
            connection.execute(update(MODELS).where(is_model(tenant, digest)).values(**change))

    def model(self, tenant: str, digest: str) -> ModelRecord | None:
        """A model of a tenant."""
        return self._found(select(MODELS).where(is_model(tenant, digest)), model_of)

    def models(self, tenant: str, *, before: int | None = None, limit: int = 50) -> list[ModelRecord]:
        """A page of a tenant's models, newest first; `before` is the number of the last one seen."""
        query = select(MODELS).where(MODELS.c.tenant == tenant).order_by(MODELS.c.number.desc()).limit(limit)
        if before is not None:
            query = query.where(MODELS.c.number < before)
        return [model_of(row) for row in self._all(query)]

    def unchecked_models(self, limit: int) -> list[ModelRecord]:
        """Models that nobody has looked into yet, oldest first."""
        waiting = MODELS.c.state == ModelState.CHECKING.value
        query = select(MODELS).where(waiting).order_by(MODELS.c.number).limit(limit)
        return [model_of(row) for row in self._all(query)]

    def remove_model(self, tenant: str, digest: str) -> bool:
        """Forget a model; raises ConflictError while a job that has not ended needs it."""
        needing = SUBMISSIONS.join(JOBS, JOBS.c.run == SUBMISSIONS.c.run)
        query = select(SUBMISSIONS.c.run).select_from(needing).limit(1)
        ours = (SUBMISSIONS.c.tenant == tenant) & (SUBMISSIONS.c.model == digest)
        with self._database.writing() as connection:
            locked_limits(connection, tenant)
            run = connection.execute(query.where(ours, JOBS.c.status.in_(GOING_ON))).scalar()
            if run is not None:
                raise ConflictError(f"job {run} needs this model; cancel it, or wait until it has ended")
            return bool(connection.execute(delete(MODELS).where(is_model(tenant, digest))).rowcount)


def is_model(tenant: str, digest: str) -> Any:
    """The condition that finds the row of a model."""
    return (MODELS.c.tenant == tenant) & (MODELS.c.digest == digest)


def model_of(row: Row[Any]) -> ModelRecord:
    """The record of one row."""
    return from_row(ModelRecord, row, state=ModelState(row.state), summary=from_json(row.summary))


_ENDED = (RunStatus.FINISHED.value, RunStatus.FAILED.value)
_LOGS = (EVENTS, SPANS, VIEWS)


class RetentionQueries(Queries):
    """What may be removed after a time; nothing that a job needs is ever among it."""

    def old_bundles(self, before: float) -> list[BundleRecord]:
        """Bundles made before then, of runs that ended before then."""
        ended = select(RUNS.c.id).where(RUNS.c.status.in_(_ENDED), RUNS.c.ended < before)
        query = select(BUNDLES).where(BUNDLES.c.created < before, BUNDLES.c.run.in_(ended))
        return [from_row(BundleRecord, row) for row in self._all(query.order_by(BUNDLES.c.created))]

    def remove_bundle(self, run: str) -> None:
        """Forget the bundle of a run; its file goes with its owner."""
        with self._database.writing() as connection:
            connection.execute(delete(BUNDLES).where(BUNDLES.c.run == run))

    def old_models(self, before: float) -> list[ModelRecord]:
        """Models uploaded before then that no job has needed since."""
        used = SUBMISSIONS.join(JOBS, JOBS.c.run == SUBMISSIONS.c.run)
        lately = select(SUBMISSIONS.c.run).select_from(used)
        lately = lately.where(SUBMISSIONS.c.tenant == MODELS.c.tenant, SUBMISSIONS.c.model == MODELS.c.digest)
        lately = lately.where(JOBS.c.status.in_(GOING_ON) | (func.coalesce(JOBS.c.ended, before) >= before))
        query = select(MODELS).where(MODELS.c.created < before, ~lately.correlate(MODELS).exists())
        return [model_of(row) for row in self._all(query.order_by(MODELS.c.number))]

    def old_logs(self, before: float) -> list[str]:
        """Runs that ended before then and still have a log: events, spans, their last view."""
        old = select(RUNS.c.id).where(RUNS.c.status.in_(_ENDED), RUNS.c.ended < before)
        old = old.where(RUNS.c.id.not_in(select(LEASES.c.run)))
        kept = [select(table.c.run).where(table.c.run == RUNS.c.id).exists() for table in _LOGS]
        query = old.where(kept[0] | kept[1] | kept[2]).order_by(RUNS.c.number)
        return [row.id for row in self._all(query)]

    def remove_logs(self, run: str) -> None:
        """Remove the log of a run; its jobs, results and records stay."""
        with self._database.writing() as connection:
            for table in _LOGS:
                connection.execute(delete(table).where(table.c.run == run))
