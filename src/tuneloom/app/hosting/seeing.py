"""What an operator sees of a service: jobs by state, trials by outcome, and what resources do."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tuneloom.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenResource:
    """A resource of an executor that lives."""

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
