"""What a store promises to a service; the rules of `tuneloom.store.api` hold here, too."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tuneloom.store.records import JobStatus, Json
from tuneloom.store.tenancy.records import (
    AuditEntry,
    BundleRecord,
    DeviceNotes,
    ModelRecord,
    ModelState,
    Role,
    SessionRecord,
    Share,
    Submission,
    SubmittedJob,
    TenantLimits,
    TenantRecord,
    TenantUsage,
    TokenRecord,
)


class TenantStore(Protocol):
    """Tenants and their tokens."""

    def add_tenant(self, name: str, limits: TenantLimits) -> TenantRecord:
        """Add a tenant; raises InputError for a name that can't be one, ConflictError if it is taken."""

    def change_tenant(self, name: str, limits: TenantLimits) -> TenantRecord | None:
        """Give a tenant other limits; None if there is no such tenant."""

    def tenant(self, name: str) -> TenantRecord | None:
        """One tenant."""

    def tenants(self) -> list[TenantRecord]:
        """All tenants in alphabetical order."""

    def usage(self, tenant: str) -> TenantUsage:
        """What a tenant uses of its quotas now."""

    def add_token(
        self, tenant: str, name: str, role: Role, digest: str, expires: float | None = None
    ) -> TokenRecord:
        """Add a token under a new id; `digest` stands for its secret."""

    def token_with_digest(self, token: str) -> tuple[TokenRecord, str] | None:
        """A token and the digest of its secret."""

    def tokens(self, tenant: str | None = None) -> list[TokenRecord]:
        """The tokens of a tenant or of all, oldest first."""

    def revoke_token(self, token: str) -> bool:
        """Let a token open nothing from now on; False if there is none that does."""


class SessionStore(Protocol):
    """Who logged in to the page; the store keeps digests of their secrets only."""

    def add_session(self, token: str, digest: str, expires: float, most: int) -> SessionRecord:
        """Note that somebody logged in with a token.

        Expired sessions go, and the oldest ones of the token beyond `most`.
        """

    def session(self, digest: str) -> SessionRecord | None:
        """The session with this digest."""

    def remove_session(self, digest: str) -> bool:
        """Log out; False if there is no such session."""


class ModelStore(Protocol):
    """Models that tenants uploaded; their files are blobs."""

    def add_model(self, tenant: str, digest: str, name: str, size_bytes: int) -> ModelRecord:
        """Note an uploaded model, once; raises QuotaError if the tenant has no room for it."""

    def describe_model(
        self, tenant: str, digest: str, state: ModelState, summary: Mapping[str, Json]
    ) -> None:
        """Keep what was found in a model."""

    def model(self, tenant: str, digest: str) -> ModelRecord | None:
        """A model of a tenant."""

    def models(self, tenant: str, *, before: int | None = None, limit: int = 50) -> list[ModelRecord]:
        """A page of a tenant's models, newest first; `before` is the number of the last one seen."""

    def unchecked_models(self, limit: int) -> list[ModelRecord]:
        """Models that nobody has looked into yet, oldest first."""

    def remove_model(self, tenant: str, digest: str) -> bool:
        """Forget a model; raises ConflictError while a job that has not ended needs it."""


class SubmissionStore(Protocol):
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

    def submitted_job(self, run: str, tenant: str | None = None) -> SubmittedJob | None:
        """A job by the name of its run, if it is this tenant's; None for `tenant` means anybody's."""

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

    def job_counts(self, tenant: str | None = None) -> dict[str, int]:
        """How many jobs there are by status, of one tenant or of all."""

    def trials_after(self, job: str, after: int, limit: int) -> list[dict[str, Json]]:
        """Trials of a job committed after the one with this id, as small plain data."""

    def last_trial(self, job: str) -> int:
        """The id of the trial of a job that was committed last, 0 if there is none."""

    def outcome_counts(self) -> dict[str, int]:
        """How many trials there are by outcome: `ok`, or the kind of failure."""

    def live_views(self) -> list[tuple[str, Mapping[str, Json]]]:
        """The views of runs whose leases stand, with the holders of these, oldest view first."""

    def keep_bundle(self, run: str, digest: str, size_bytes: int) -> None:
        """Note the bundle of a run that we carry out, replacing an earlier one."""

    def bundle(self, run: str) -> BundleRecord | None:
        """The bundle of a run, if it has one."""


class WatchStore(Protocol):
    """What people watch while jobs run, and afterwards."""

    def spans_after(self, run: str, after: int, limit: int) -> list[dict[str, Json]]:
        """Spans of a run written after the one with this id, as small plain data."""

    def failed_trials(self, job: str, limit: int) -> list[dict[str, Json]]:
        """The trials of a job that failed, with their messages, newest first."""

    def device_notes(self, limit: int) -> list[DeviceNotes]:
        """What the jobs that started last noted about devices, newest first."""


class ShareStore(Protocol):
    """Who has what of the executors."""

    def share_of(self, run: str) -> Share | None:
        """The tenant of a run and its weight; None for a run that no tenant submitted."""

    def add_use(self, used: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], float]:
        """Add seconds of device time by tenant and device key; returns what all executors have added."""


class RetentionStore(Protocol):
    """What may be removed after a time; nothing that a job needs is ever among it."""

    def old_bundles(self, before: float) -> list[BundleRecord]:
        """Bundles made before then, of runs that ended before then."""

    def remove_bundle(self, run: str) -> None:
        """Forget the bundle of a run; its file goes with its owner."""

    def old_models(self, before: float) -> list[ModelRecord]:
        """Models uploaded before then that no job has needed since."""

    def old_logs(self, before: float) -> list[str]:
        """Runs that ended before then and still have a log: events, spans, their last view."""

    def remove_logs(self, run: str) -> None:
        """Remove the log of a run; its jobs, results and records stay."""


class AuditStore(Protocol):
    """What was done by whom; append-only."""

    def add_audit(self, entry: AuditEntry) -> None:
        """Append an entry with the present time."""

    def audit(
        self,
        tenant: str | None = None,
        *,
        subject: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> list[AuditEntry]:
        """A page of entries, newest first; `subject` is what something was done to."""


class ServiceStore(
    TenantStore,
    SessionStore,
    ModelStore,
    SubmissionStore,
    WatchStore,
    ShareStore,
    RetentionStore,
    AuditStore,
    Protocol,
):
    """Everything that a service keeps beyond runs."""
