"""What is old enough to be removed, and needed by nobody."""

from sqlalchemy import delete, func, select

from tuneloom.store.database.queries import Queries
from tuneloom.store.database.tables.runs import EVENTS, JOBS, LEASES, RUNS, SPANS, VIEWS
from tuneloom.store.database.tables.tenancy import BUNDLES, MODELS, SUBMISSIONS
from tuneloom.store.records import RunStatus
from tuneloom.store.tenancy.models import model_of
from tuneloom.store.tenancy.records import BundleRecord, ModelRecord
from tuneloom.store.tenancy.tenants import GOING_ON

_ENDED = (RunStatus.FINISHED.value, RunStatus.FAILED.value)
_LOGS = (EVENTS, SPANS, VIEWS)


class RetentionQueries(Queries):
    """What may be removed after a time; nothing that a job needs is ever among it."""

    def old_bundles(self, before: float) -> list[BundleRecord]:
        """Bundles made before then, of runs that ended before then."""
        ended = select(RUNS.c.id).where(RUNS.c.status.in_(_ENDED), RUNS.c.ended < before)
        query = select(BUNDLES).where(BUNDLES.c.created < before, BUNDLES.c.run.in_(ended))
        with self._database.reading() as connection:
            return [
                BundleRecord(**row)
                for row in connection.execute(query.order_by(BUNDLES.c.created)).mappings()
            ]

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
        with self._database.reading() as connection:
            return [model_of(row) for row in connection.execute(query.order_by(MODELS.c.number))]

    def old_logs(self, before: float) -> list[str]:
        """Runs that ended before then and still have a log: events, spans, their last view."""
        old = select(RUNS.c.id).where(RUNS.c.status.in_(_ENDED), RUNS.c.ended < before)
        old = old.where(RUNS.c.id.not_in(select(LEASES.c.run)))
        kept = [select(table.c.run).where(table.c.run == RUNS.c.id).exists() for table in _LOGS]
        query = old.where(kept[0] | kept[1] | kept[2]).order_by(RUNS.c.number)
        with self._database.reading() as connection:
            return list(connection.execute(query).scalars())

    def remove_logs(self, run: str) -> None:
        """Remove the log of a run; its jobs, results and records stay."""
        with self._database.writing() as connection:
            for table in _LOGS:
                connection.execute(delete(table).where(table.c.run == run))
