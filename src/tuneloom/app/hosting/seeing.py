"""What people see of a service: jobs by state, trials by outcome, and what resources do."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tuneloom.store import JobStatus, Store, SubmittedJob


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenResource:
    """A resource of a live executor, idle or not."""

    executor: str
    name: str
    key: str | None
    slots: int
    taken: int
    utilisation: float
    queue: int
    now: str

    @property
    def label(self) -> str:
        """Names it beside those of other executors."""
        return f"{self.executor}/{self.name}"

    def for_others(self) -> "SeenResource":
        """The same for those who may not know what it does for whom."""
        return replace(self, now="busy" if self.taken else "idle")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceView:
    """A service at one moment."""

    jobs: Mapping[str, int]
    trials: Mapping[str, int]
    resources: tuple[SeenResource, ...]


def service_view(store: Store) -> ServiceView:
    """What the store knows now."""
    return ServiceView(
        jobs=store.job_counts(), trials=store.outcome_counts(), resources=seen_resources(store)
    )


def seen_resources(store: Store) -> tuple[SeenResource, ...]:
    """The resources of all executors that live; each executor's newest view counts."""
    return resources_in(store.live_views())


def resources_in(views: Iterable[tuple[str, Mapping[str, Any]]]) -> tuple[SeenResource, ...]:
    """The resources in views of runs, oldest view first, that come with the names of their executors."""
    newest = dict(views)
    return tuple(
        SeenResource(executor=_host(holder), **resource)
        for holder, view in sorted(newest.items())
        for resource in view.get("resources", ())
    )


def without_others(view: Mapping[str, Any]) -> dict[str, Any]:
    """A view of a run for its tenant: what resources do for others is nobody's business."""
    resources = [
        {**each, "now": "busy" if each.get("taken") else "idle"} for each in view.get("resources", ())
    ]
    return {**view, "resources": resources}


def _host(holder: str) -> str:
    return holder.rpartition("-")[0] or holder


def device_keys(store: Store) -> frozenset[str]:
    """The keys of devices that executors have now; none while no executor tells."""
    return frozenset(resource.key for resource in seen_resources(store) if resource.key)


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
