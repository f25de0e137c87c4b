"""A service at a glance: jobs that go on with their progress, how many there are, and what resources do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tuneloom.app.hosting.seeing import SeenResource, resources_in
from tuneloom.store import JobStatus, Store, SubmittedJob

_MOST_JOBS = 200
_GOING_ON = tuple(status for status in JobStatus if not status.ended)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What a tenant sees at one moment, or an administrator of all tenants.

    `jobs` are those that have not ended, newest first and at most 200 of them; `progress` has the
    pictures of those that an executor carries out, by their ids.
    """

    counts: Mapping[str, int]
    jobs: tuple[SubmittedJob, ...]
    progress: Mapping[str, Mapping[str, Any]]
    resources: tuple[SeenResource, ...]


def overview_of(store: Store, tenant: str | None) -> Overview:
    """What the store knows now; None for all tenants."""
    jobs = store.submitted_jobs(tenant, statuses=_GOING_ON, limit=_MOST_JOBS)
    views = store.live_views()
    pictures = {str(view.get("run")): view.get("jobs", ()) for _, view in views}
    return Overview(
        counts=store.job_counts(tenant),
        jobs=tuple(jobs),
        progress={job.id: pictures[job.id][0] for job in jobs if pictures.get(job.id)},
        resources=resources_in(views),
    )
