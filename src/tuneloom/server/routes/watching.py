"""A job as people follow it: its timeline, its log, how it was measured and what it reused."""

from typing import Annotated

from fastapi import APIRouter, Query

from tuneloom.app.hosting.watching import log_of, timeline_of
from tuneloom.report import ReportData
from tuneloom.server.access.callers import Reader
from tuneloom.server.bodies.jobs import (
    GiftTold,
    LogTold,
    ProvenanceTold,
    ResourceTold,
    SpanTold,
    TimelineTold,
)
from tuneloom.server.parameters import JobId, Reported, found_job
from tuneloom.server.problems import documented
from tuneloom.server.state import Served
from tuneloom.server.telling import finite, in_ms

ROUTER = APIRouter(prefix="/jobs/{job}", tags=["watching"])


@ROUTER.get("/timeline", responses=documented(404, 422))
def show_timeline(
    service: Served,
    caller: Reader,
    job: JobId,
    after: Annotated[int, Query(ge=0, le=2**53, description="only spans after the one with this id")] = 0,
) -> TimelineTold:
    """Which stage of a job held which resource when."""
    with service.stores.lent() as store:
        found = timeline_of(store, found_job(store, job, caller).id, after)
    return TimelineTold(
        resources=[ResourceTold(**{"device_key": None, **each}) for each in finite(found.resources)],
        spans=[SpanTold(**each) for each in finite(found.spans)],
        complete=found.complete,
    )


@ROUTER.get("/log", responses=documented(404, 422))
def show_log(service: Served, caller: Reader, job: JobId) -> LogTold:
    """What happened to a job: its states, who asked for what, failed trials, devices lost and returned."""
    with service.stores.lent() as store:
        entries = log_of(store, found_job(store, job, caller))
    return LogTold(entries=entries)


@ROUTER.get("/provenance", responses=documented(404, 422))
def show_provenance(data: Reported) -> ProvenanceTold:
    """How a job was measured, how quiet its device was, and which schedules it reused from where."""
    return ProvenanceTold(
        facts=list(data.facts),
        canary=finite([[point.at_s, point.ratio] for point in data.drift]),
        reused=_gifts(data),
    )


def _gifts(data: ReportData) -> list[GiftTold]:
    return [
        GiftTold(
            kernel=data.called(gift.receiver),
            donor=data.called(gift.donor),
            source=gift.source,
            before_ms=in_ms(gift.before_s),
            after_ms=in_ms(gift.after_s),
            used=gift.used,
        )
        for gift in data.gifts
    ]
