"""Jobs: submit, list, look at, and change while they go on."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from tuneloom.app.hosting.expecting import Expectation, as_submission, expectation
from tuneloom.app.hosting.submitting import Requester, submission_of
from tuneloom.app.runs.asking.control import wish
from tuneloom.server.access.callers import Principal, Reader, Submitter
from tuneloom.server.bodies.asked import JobAsked, PriorityAsked
from tuneloom.server.bodies.jobs import JobDetails, JobPage, Status
from tuneloom.server.parameters import Before, JobId, Limit, TenantFilter, found_job, next_of, seen_tenant
from tuneloom.server.problems import Problem, documented
from tuneloom.server.state import Served, ServerState
from tuneloom.server.telling import job_details, job_told
from tuneloom.store import JobStatus, Store, SubmittedJob, WishKind

ROUTER = APIRouter(prefix="/jobs", tags=["jobs"])
Key = Annotated[
    str | None,
    Header(max_length=200, min_length=1, description="submitting again with the same key gives the same job"),
]


@ROUTER.post(
    "",
    status_code=201,
    responses={
        200: {"model": JobDetails, "description": "this key was used before: the job that is there"},
        **documented(409, 413, 422),
    },
)
def submit_job(
    service: Served, caller: Submitter, asked: JobAsked, response: Response, idempotency_key: Key = None
) -> JobDetails:
    """Submit a job; an executor takes it as soon as one is free."""
    values = {field: value for field, value in asked.model_dump().items() if value is not None}
    with service.stores.lent() as store:
        submission = submission_of(store, values, _requester(service, store, caller), idempotency_key)
        noted = caller.entry("submit job", "", model=submission.model)
        job, new = store.submit_job(submission, service.run_options, noted)
        expected = expectation(store, submission)
    response.status_code = 201 if new else 200
    response.headers["Location"] = f"/api/v1/jobs/{job.id}"
    return job_details(job, None, None, expected)


@ROUTER.post("/expectation", responses=documented(413, 422))
def expect_job(service: Served, caller: Reader, asked: JobAsked) -> Expectation:
    """Estimate what a job would take and gain; nothing is stored."""
    values = {field: value for field, value in asked.model_dump().items() if value is not None}
    with service.stores.lent() as store:
        submission = submission_of(store, values, _requester(service, store, caller))
        return expectation(store, submission)


def _requester(service: ServerState, store: Store, caller: Principal) -> Requester:
    tenant = store.tenant(caller.tenant)
    assert tenant is not None, "tokens go with their tenant"
    return Requester(
        tenant=caller.tenant,
        token=caller.token,
        limits=tenant.limits,
        tuners=service.settings.tuners,
        devices=service.device_keys(store),
    )


@ROUTER.get("", responses=documented(404, 422))
def list_jobs(
    service: Served,
    caller: Reader,
    status: Annotated[
        list[Status] | None, Query(max_length=6, description="only jobs in these states")
    ] = None,
    model: Annotated[str | None, Query(max_length=200, description="only jobs of this model")] = None,
    name: Annotated[
        str | None, Query(max_length=100, description="only jobs whose name contains this")
    ] = None,
    tenant: TenantFilter = None,
    before: Before = None,
    limit: Limit = 50,
) -> JobPage:
    """Jobs of your tenant, newest first."""
    statuses = [JobStatus(each) for each in status or ()]
    with service.stores.lent() as store:
        found = store.submitted_jobs(
            seen_tenant(caller, tenant), statuses=statuses, model=model, name=name, before=before, limit=limit
        )
    return JobPage(jobs=[job_told(job) for job in found], next=next_of(found, limit))


@ROUTER.get("/{job}", responses=documented(404, 422))
def show_job(service: Served, caller: Reader, job: JobId) -> JobDetails:
    """One job and its latest progress."""
    with service.stores.lent() as store:
        found = found_job(store, job, caller)
        waits = found.status is JobStatus.WAITING
        expected = expectation(store, as_submission(found)) if waits else None
        return job_details(found, store.view(found.id), store.bundle(found.id), expected)


@ROUTER.patch("/{job}", responses=documented(404, 409, 413, 422))
def change_job(service: Served, caller: Submitter, job: JobId, asked: PriorityAsked) -> JobDetails:
    """Change the priority of a job."""
    with service.stores.lent() as store:
        found = found_job(store, job, caller)
        tenant = store.tenant(found.tenant)
        assert tenant is not None
        most = tenant.limits.most_priority
        if abs(asked.priority) > most:
            raise Problem(422, f"'priority' must lie between -{most} and {most}", "priority")
        _wish(store, caller, found, WishKind.PRIORITY, "prioritise job", {"priority": asked.priority})
        return _shown(store, caller, job)


@ROUTER.post("/{job}/pause", status_code=202, responses=documented(404, 409, 422))
def pause_job(service: Served, caller: Submitter, job: JobId) -> JobDetails:
    """Pause a job: running stages end normally, no new ones start."""
    return _changed(service, caller, job, WishKind.PAUSE, (JobStatus.WAITING, JobStatus.RUNNING))


@ROUTER.post("/{job}/resume", status_code=202, responses=documented(404, 409, 422))
def resume_job(service: Served, caller: Submitter, job: JobId) -> JobDetails:
    """Resume a paused job."""
    return _changed(service, caller, job, WishKind.UNPAUSE, (JobStatus.PAUSED,))


@ROUTER.post("/{job}/cancel", status_code=202, responses=documented(404, 409, 422))
def cancel_job(service: Served, caller: Submitter, job: JobId) -> JobDetails:
    """Cancel a job; its measurements are kept."""
    going_on = (JobStatus.WAITING, JobStatus.RUNNING, JobStatus.PAUSED)
    return _changed(service, caller, job, WishKind.CANCEL, going_on)


def _changed(
    service: ServerState, caller: Principal, job: str, kind: WishKind, allowed: tuple[JobStatus, ...]
) -> JobDetails:
    with service.stores.lent() as store:
        found = found_job(store, job, caller)
        if found.status not in allowed:
            raise Problem(409, f"job {found.id} is {found.status.value}; nothing to change")
        _wish(store, caller, found, kind, f"{kind.value} job", {})
        return _shown(store, caller, job)


def _shown(store: Store, caller: Principal, job: str) -> JobDetails:
    """A job as it is now; a change of one that waits shows at once."""
    found = found_job(store, job, caller)
    return job_details(found, store.view(found.id), store.bundle(found.id))


def _wish(
    store: Store, caller: Principal, job: SubmittedJob, kind: WishKind, action: str, body: dict[str, int]
) -> None:
    if job.status.ended:
        raise Problem(409, f"job {job.id} is {job.status.value}; nothing to change")
    wish(store, job.id, kind, job.job, body)
    store.add_audit(caller.entry(action, job.id, **body))
