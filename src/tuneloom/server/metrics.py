"""Numbers for Prometheus: what the store knows, and how long requests take."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tuneloom.app.hosting.seeing import ServiceView


class Metrics:
    """The numbers of one server; scraping reads a view of the store that the caller brings."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        names = ("method", "route", "status")
        self._requests = Counter("tuneloom_requests", "Requests.", names, registry=self._registry)
        self._seconds = Histogram(
            "tuneloom_request_seconds", "Time of requests.", ("method", "route"), registry=self._registry
        )

    def timed(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request; unknown routes and methods share a name, so that nobody can invent many."""
        method = method if method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS") else "other"
        self._requests.labels(method, route or "none", str(status)).inc()
        self._seconds.labels(method, route or "none").observe(seconds)

    def text(self, seen: ServiceView) -> bytes:
        """Everything in the text format."""
        own = CollectorRegistry()
        own.register(_Seen(seen))
        return generate_latest(self._registry) + generate_latest(own)


class _Seen(Collector):
    def __init__(self, seen: ServiceView) -> None:
        self._seen = seen

    def collect(self) -> Iterator[Metric]:
        jobs = GaugeMetricFamily("tuneloom_jobs", "Jobs by state.", labels=["state"])
        for state, count in self._seen.jobs.items():
            jobs.add_metric([state], count)
        trials = GaugeMetricFamily("tuneloom_trials", "Trials in the store by outcome.", labels=["outcome"])
        for outcome, count in self._seen.trials.items():
            trials.add_metric([outcome], count)
        busy = GaugeMetricFamily(
            "tuneloom_utilisation", "Part of the time that a resource was busy.", labels=["resource"]
        )
        queue = GaugeMetricFamily("tuneloom_queue", "Stages that wait for a resource.", labels=["resource"])
        for resource in self._seen.resources:
            busy.add_metric([resource.label], resource.utilisation)
            queue.add_metric([resource.label], resource.queue)
        yield from (jobs, trials, busy, queue)
