"""What comes out of a job: kernels, curves, its report and its bundle."""

from typing import Annotated

from fastapi import APIRouter, Header
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from tuneloom.report import render_report
from tuneloom.report.data import TaskResult
from tuneloom.server.access.callers import Reader
from tuneloom.server.bodies.jobs import CurveTold, TasksTold, TaskTold
from tuneloom.server.parameters import JobId, Reported, found_job
from tuneloom.server.problems import Problem, documented
from tuneloom.server.state import Served
from tuneloom.server.telling import in_ms

ROUTER = APIRouter(prefix="/jobs/{job}", tags=["results"])
_REPORT_CSP = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "sandbox allow-scripts"
)
_FILE = {"content": {"application/gzip": {"schema": {"type": "string", "format": "binary"}}}}


@ROUTER.get("/tasks", responses=documented(404, 422))
def list_tasks(data: Reported) -> TasksTold:
    """The kernels of a job's model, before and after tuning."""
    return TasksTold(tasks=[_task_told(task) for task in data.tasks])


def _task_told(task: TaskResult) -> TaskTold:
    same = ("key", "name", "kernel_class", "shapes", "weight", "gflop", "trials")
    return TaskTold(
        **{name: getattr(task, name) for name in same},
        failed=len(task.failed_at),
        before_ms=in_ms(task.before_s),
        after_ms=in_ms(task.after_s),
    )


@ROUTER.get("/curve", responses=documented(404, 422))
def show_curve(data: Reported) -> CurveTold:
    """The best latency of the whole model against the number of trials."""
    points = [point for model in data.models for point in model.progress]
    return CurveTold(trials=[p.trial for p in points], best_ms=[p.best_s * 1e3 for p in points])


@ROUTER.get("/report", response_class=HTMLResponse, responses=documented(404, 422))
def show_report(data: Reported) -> HTMLResponse:
    """The report about a job, as `tuneloom report` writes it."""
    return HTMLResponse(render_report(data), headers={"Content-Security-Policy": _REPORT_CSP})


@ROUTER.get(
    "/bundle",
    response_class=Response,
    responses={
        200: {"description": "a .tar.gz", **_FILE},
        304: {"description": "you have it"},
        **documented(404, 422),
    },
)
def download_bundle(
    service: Served,
    caller: Reader,
    job: JobId,
    if_none_match: Annotated[str | None, Header(max_length=500)] = None,
) -> Response:
    """The bundle of a finished job as one file; its ETag is its SHA-256."""
    with service.stores.lent() as store:
        found = found_job(store, job, caller)
        bundle = store.bundle(found.id)
        if bundle is None or not store.has_blob(bundle.digest):
            raise Problem(404, f"job {found.id} has no bundle; it is {found.status.value}")
    headers = {
        "ETag": f'"{bundle.digest}"',
        "Cache-Control": "private, no-cache",
        "X-Content-SHA256": bundle.digest,
    }
    if if_none_match is not None and headers["ETag"] in if_none_match:
        return Response(status_code=304, headers=headers)
    headers |= {
        "Content-Length": str(bundle.size_bytes),
        "Content-Disposition": f'attachment; filename="{found.id}.tar.gz"',
    }
    return StreamingResponse(service.blob(bundle.digest), media_type="application/gzip", headers=headers)
