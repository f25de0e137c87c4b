"""What several routes take: ids of jobs, tenants and pages of lists."""

from collections.abc import Sequence
from typing import Annotated, Protocol

from fastapi import Depends, Path, Query

from tuneloom.app.reports.reporting import report_data
from tuneloom.report import ReportData
from tuneloom.server.access.callers import Principal, Reader
from tuneloom.server.problems import Problem
from tuneloom.server.state import Served
from tuneloom.store import Store, SubmittedJob

JobId = Annotated[
    str, Path(max_length=60, pattern=r"^[a-z0-9-]+$", description="the job's id", examples=["amber-heron-42"])
]
TenantFilter = Annotated[
    str | None, Query(max_length=40, description="for administrators: another tenant, or * for all")
]


def found_job(store: Store, job: str, caller: Principal) -> SubmittedJob:
    """The job of this id that the caller may see; raises Problem if there is none."""
    found = store.submitted_job(job, caller.sees)
    if found is None:
        raise Problem(404, f"no job {job!r}; list yours to see what there is")
    return found


def seen_tenant(caller: Principal, tenant: str | None) -> str | None:
    """The tenant whose jobs are asked for, None for all; raises Problem if the caller may not see them."""
    if tenant in (None, caller.tenant):
        return caller.tenant
    if caller.sees is not None:
        raise Problem(403, "only administrators see the jobs of other tenants", "tenant")
    return None if tenant == "*" else tenant


class Numbered(Protocol):
    """Something that lists can be cut by."""

    @property
    def number(self) -> int:
        """Grows with everything that is added."""


Before = Annotated[
    int | None, Query(ge=0, le=2**53, description="only entries before this one: `next` of the previous page")
]
Limit = Annotated[int, Query(ge=1, le=500, description="the largest number of entries to return")]


def next_of(found: Sequence[Numbered], limit: int) -> int | None:
    """Where the next page begins, if this one is full."""
    return found[-1].number if len(found) == limit else None


def report_of(service: Served, caller: Reader, job: JobId) -> ReportData:
    """What a report shows of a job that the caller may see."""
    with service.stores.lent() as store:
        return report_data(store, found_job(store, job, caller).id)


Reported = Annotated[ReportData, Depends(report_of)]
