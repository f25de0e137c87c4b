"""From records of the store to answers."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tuneloom.app.hosting.expecting import Expectation
from tuneloom.app.hosting.seeing import Overview, without_others
from tuneloom.model.rival import Rival
from tuneloom.server.bodies.accounts import TenantTold, TokenTold
from tuneloom.server.bodies.jobs import BundleTold, JobDetails, JobTold
from tuneloom.server.bodies.knowledge import ModelTold
from tuneloom.store import (
    BundleRecord,
    JobStatus,
    ModelRecord,
    SubmittedJob,
    TenantRecord,
    TenantUsage,
    TokenRecord,
)

_NOT_TOLD = ("trace",)


def model_told(record: ModelRecord) -> ModelTold:
    """A model for its tenant."""
    return ModelTold(
        digest=record.digest,
        name=record.name,
        size_bytes=record.size_bytes,
        created=record.created,
        state=record.state.value,
        summary=finite(dict(record.summary)),
    )


def job_told(job: SubmittedJob) -> JobTold:
    """A job as a line of a list."""
    return JobTold(**_line(job))


def job_details(
    job: SubmittedJob,
    view: Mapping[str, Any] | None,
    bundle: BundleRecord | None,
    expected: Expectation | None = None,
) -> JobDetails:
    """A job with all that is known of it."""
    return JobDetails(
        **_line(job),
        expectation=expected,
        progress=finite(without_others(view)) if view is not None else None,
        result=finite({key: value for key, value in job.result.items() if key not in _NOT_TOLD}),
        bundle=bundle_told(bundle),
    )


def bundle_told(bundle: BundleRecord | None) -> BundleTold | None:
    """A bundle, if there is one."""
    if bundle is None:
        return None
    return BundleTold(digest=bundle.digest, size_bytes=bundle.size_bytes, created=bundle.created)


def overview_told(seen: Overview, *, in_detail: bool) -> dict[str, Any]:
    """A service at a glance; what resources do for whom is told to administrators alone."""
    jobs = [
        job_told(job).model_dump() | {"progress": _progress(seen.progress.get(job.id))} for job in seen.jobs
    ]
    return {
        "counts": dict(seen.counts),
        "jobs": finite(jobs),
        "devices": finite([asdict(each if in_detail else each.for_others()) for each in seen.resources]),
    }


def _progress(picture: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if picture is None:
        return None
    names = ("stage", "spent", "budget", "left_s", "measured", "kernels")
    return {name: picture.get(name) for name in names} | {"best_ms": in_ms(picture.get("best_s"))}


def tenant_told(tenant: TenantRecord, usage: TenantUsage) -> TenantTold:
    """A tenant for administrators."""
    return TenantTold(
        name=tenant.id,
        created=tenant.created,
        **asdict(tenant.limits),
        used_jobs=usage.jobs,
        used_trials=usage.trials,
        used_bytes=usage.size_bytes,
    )


def token_told(token: TokenRecord) -> TokenTold:
    """A token without its secret."""
    return TokenTold(**asdict(token) | {"role": token.role.value})


def finite(value: Any) -> Any:
    """The same data without numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value


def in_ms(seconds: float | None) -> float | None:
    """Seconds as milliseconds; what is not finite is nothing."""
    return seconds * 1e3 if seconds is not None and math.isfinite(seconds) else None


def _in_time(job: SubmittedJob) -> bool | None:
    """Whether it ended by its deadline; None while nobody can tell, or without one."""
    wanted_s = job.spec.get("deadline_s")
    if wanted_s is None or job.ended is None:
        return None
    return job.status is JobStatus.FINISHED and job.ended - job.created <= wanted_s


def _line(job: SubmittedJob) -> dict[str, Any]:
    spec, result = job.spec, job.result
    budget, rival = spec.get("budget", {}), Rival.told_by(result)
    return {
        "id": job.id,
        "name": job.name,
        "tenant": job.tenant,
        "status": job.status.value,
        "model": job.model,
        "target": spec.get("target", ""),
        "device": spec.get("device_key", ""),
        "trials": job.trials,
        "seconds": budget.get("seconds"),
        "goal_ms": budget.get("goal_ms"),
        "goal_ratio": budget.get("goal_ratio"),
        "goal_met": result.get("goal", {}).get("met"),
        "priority": spec.get("priority", 0),
        "deadline_s": spec.get("deadline_s"),
        "deadline_met": _in_time(job),
        "created": job.created,
        "started": job.started,
        "ended": job.ended,
        "before_ms": in_ms(result.get("latency_before_s")),
        "after_ms": in_ms(result.get("latency_after_s", result.get("best_s"))),
        "rival": rival.name or None,
        "rival_ms": in_ms(rival.alone_s),
        "beside_ms": in_ms(rival.bundle_s),
        "failure": result.get("failure"),
    }
