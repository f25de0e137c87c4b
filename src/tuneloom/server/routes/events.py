"""What happens to a job, as server-sent events that can be resumed."""

from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from tuneloom.server.access.callers import Reader
from tuneloom.server.parameters import JobId, TenantFilter, found_job, seen_tenant
from tuneloom.server.problems import Problem, documented
from tuneloom.server.state import Served, ServerState
from tuneloom.server.streams.events import job_events, mark_of, overview_events

ROUTER = APIRouter(tags=["events"])
_MEDIA_TYPE = "text/event-stream"
_STREAM = {"content": {_MEDIA_TYPE: {"schema": {"type": "string"}}}}


@ROUTER.get(
    "/jobs/{job}/events",
    response_class=Response,
    responses={
        200: {"description": "events `view`, `trials` and `end`", **_STREAM},
        **documented(404, 422, 503),
    },
)
async def stream_events(
    service: Served,
    caller: Reader,
    job: JobId,
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
) -> Response:
    """Stream the events of a job until it ends.

    `view` is the state of the job, `trials` are those committed since the last event, `end` is
    the last one. A stream that is opened again with `Last-Event-ID` continues where it was interrupted.
    """

    def found() -> str:
        with service.stores.lent() as store:
            return found_job(store, job, caller).id

    run = await run_in_threadpool(found)
    _require_room(service)
    return StreamingResponse(job_events(service.streams, run, mark_of(last_event_id)), media_type=_MEDIA_TYPE)


@ROUTER.get(
    "/events",
    response_class=Response,
    responses={200: {"description": "events `overview`", **_STREAM}, **documented(422, 503)},
)
async def stream_overview(
    service: Served,
    caller: Reader,
    tenant: TenantFilter = None,
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
) -> Response:
    """Stream the state of your tenant's active jobs and of all devices, whenever it changes.

    Each event is complete: counts of jobs by state, jobs with their progress, devices. A stream that
    is opened again with `Last-Event-ID` begins with a change.
    """
    seen = seen_tenant(caller, tenant) or "*"
    _require_room(service)
    name = seen if caller.sees is not None else f"!{seen}"
    return StreamingResponse(
        overview_events(service.streams, name, last_event_id or ""), media_type=_MEDIA_TYPE
    )


def _require_room(service: ServerState) -> None:
    if service.streams.count >= service.settings.most_streams:
        raise Problem(503, "too many event streams are open; try again later", headers={"Retry-After": "10"})
