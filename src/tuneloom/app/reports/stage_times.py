"""What the stages of a run took, one by one, in the form that `tuneloom simulate --recorded` reads."""

from collections.abc import Mapping
from typing import Any

from tuneloom.app.finishing.contests import needs_host
from tuneloom.errors import InputError
from tuneloom.model import StageKind
from tuneloom.store import SpanRecord, open_existing

_ON_HOSTS = frozenset({StageKind.INITIALISE, StageKind.SELECT, StageKind.BUILD, StageKind.UPDATE})
"""Stages that need a host, even if idle cores of a device were lent to them."""

CANARY = "canary"
"""Profiles of a fixed kernel; for whoever replays the run they are profiles."""


def stage_times(run: str, place: str | None = None) -> list[dict[str, Any]]:
    """One object for each stage, in the order of their ends; raises InputError if there is none."""
    with open_existing(place) as store:
        record = store.run(run)
        names = {job.id: job.name for job in store.jobs(record.id)}
        resources = store.notes(record.id).get("resources") or ()
        spans = sorted(store.spans(record.id), key=lambda span: span.end_s)
    if not spans:
        raise InputError(f"run {record.id} has no stages yet")
    keys = {str(each["name"]): each.get("device_key") for each in resources}
    return [_line(span, names.get(span.job, span.job), keys) for span in spans]


def _line(span: SpanRecord, job: str, keys: Mapping[str, str | None]) -> dict[str, Any]:
    kind = StageKind.PROFILE.value if span.kind == CANARY else span.kind
    line: dict[str, Any] = {
        "job": job,
        "task": span.task,
        "kind": kind,
        "seconds": round(span.end_s - span.start_s, 6),
    }
    on_host = kind in _ON_HOSTS or (kind == StageKind.FINALISE and needs_host(span.task))
    key = None if on_host else keys.get(span.resource)
    return line | ({"device_key": key} if key else {"slots": span.slots})
