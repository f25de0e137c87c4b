"""What a run took and what came out of it, as plain figures."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import prod
from statistics import median
from typing import Any

from tuneloom.store import JobRecord, JobStatus, SpanRecord, open_existing


def run_figures(place: str, name: str = "last") -> dict[str, Any]:
    """The figures of one run.

    Latencies are sums over the models of the run, in seconds; the speed-up is the
    geometric mean of the models'. Stage seconds count every slot held.
    """
    with open_existing(place) as store:
        run = store.run(name)
        jobs, spans = store.jobs(run.id), store.spans(run.id)
        slots = {each["name"]: each["slots"] for each in store.notes(run.id).get("resources") or ()}
    failed = _failures(jobs)
    return {
        "run": run.id,
        "tuning_s": max((span.end_s for span in spans), default=0.0),
        "stage_s": _stage_seconds(spans),
        "busy": _busy(spans, slots),
        "waited_s": _waited(spans),
        "latency_before_s": _total(jobs, "latency_before_s"),
        "latency_after_s": _total(jobs, "latency_after_s"),
        "latencies_after_s": {job.name: job.result.get("latency_after_s") for job in jobs},
        "speed_up": _speed_up(jobs),
        "trials": sum(job.result.get("trials", 0) for job in jobs),
        "failed": sum(failed.values()),
        "failures": dict(failed),
        "canary_s": [seconds for job in jobs for seconds in job.result.get("canary_s", ())],
        "jobs_unfinished": sum(job.status is not JobStatus.FINISHED for job in jobs),
    }


def _stage_seconds(spans: Sequence[SpanRecord]) -> dict[str, float]:
    seconds: defaultdict[str, float] = defaultdict(float)
    for span in spans:
        seconds[span.kind] += (span.end_s - span.start_s) * span.slots
    return dict(seconds)


def _busy(spans: Sequence[SpanRecord], slots: Mapping[str, int]) -> dict[str, float]:
    """The share of the run for which each resource was held."""
    end_s = max((span.end_s for span in spans), default=0.0)
    held: defaultdict[str, float] = defaultdict(float)
    for span in spans:
        held[span.resource] += (span.end_s - span.start_s) * span.slots
    return {name: held[name] / (count * end_s) if end_s else 0.0 for name, count in slots.items()}


def _waited(spans: Sequence[SpanRecord]) -> dict[str, float]:
    """How long stages waited for each resource, on average."""
    waits: dict[str, list[float]] = {}
    for span in spans:
        if span.ready_s is not None:
            waits.setdefault(span.resource, []).append(span.start_s - span.ready_s)
    return {name: sum(each) / len(each) for name, each in waits.items()}


def _total(jobs: Sequence[JobRecord], key: str) -> float | None:
    values = [job.result.get(key) for job in jobs]
    return sum(value for value in values if value) if values and all(values) else None


def _speed_up(jobs: Sequence[JobRecord]) -> float | None:
    pairs = [(job.result.get("latency_before_s"), job.result.get("latency_after_s")) for job in jobs]
    ratios = [before / after for before, after in pairs if before and after]
    return float(prod(ratios) ** (1 / len(ratios))) if ratios and len(ratios) == len(pairs) else None


def _failures(jobs: Sequence[JobRecord]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for job in jobs:
        counted.update(job.result.get("failures", {}))
    return counted


def median_or_none(values: Sequence[float]) -> float | None:
    """The middle of what there is."""
    return median(values) if values else None
