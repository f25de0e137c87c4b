"""What happens to a job, as server-sent events that can be resumed."""

from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import Response, StreamingResponse
from starlette.concurrency import run_in_threadpool

from tuneloom.server.callers import Reader, Served
from tuneloom.server.events import job_events, mark_of
from tuneloom.server.finding import JobId, found_job
from tuneloom.server.problems import Problem, documented

ROUTER = APIRouter(prefix="/jobs/{job}", tags=["events"])
_STREAM = {"content": {"text/event-stream": {"schema": {"type": "string"}}}}


@ROUTER.get(
    "/events",
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
    """Events of a job until it has ended.

    `view` is what the job looks like, `trials` are those committed since the last event, `end` is
    the last one. A stream that is opened again with `Last-Event-ID` goes on where it broke off.
    """

    def found() -> str:
        with service.stores.lent() as store:
            return found_job(store, job, caller).id

    run = await run_in_threadpool(found)
    if service.streams >= service.settings.most_streams:
        raise Problem(503, "too many event streams are open; try again later", headers={"Retry-After": "10"})
    return StreamingResponse(job_events(service, run, mark_of(last_event_id)), media_type="text/event-stream")
