"""What the resources of a run do, as its executor told the store lately."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from tuneloom.errors import InputError
from tuneloom.store import RunStatus, open_existing

_RESOURCES = "resources"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceStatus:
    """One resource; `state` says what it runs, or since when and why it is away."""

    machine: str
    name: str
    key: str
    slots: int
    utilisation: float
    queue: int
    state: str


def farm_status(run: str, place: str | None = None) -> list[ResourceStatus]:
    """The resources of a run, by machine; raises InputError for one that does not run."""
    with closing(open_existing(place)) as store:
        record = store.run(run)
        if record.status is not RunStatus.RUNNING:
            raise InputError(
                f"run {record.id} is not running, it is {record.status.value}; "
                f"`tuneloom report {record.id}` shows what it did"
            )
        listed = store.notes(record.id).get(_RESOURCES) or ()
        view = store.view(record.id) or {}
    pictures = {str(each["name"]): each for each in view.get("resources", ())}
    rows = [_status(entry, pictures.get(str(entry["name"]), {})) for entry in listed]
    return sorted(rows, key=lambda row: (row.machine, bool(row.key), row.name))


def _status(entry: Mapping[str, Any], picture: Mapping[str, Any]) -> ResourceStatus:
    away: Sequence[Any] = entry.get("away") or ()
    gone = bool(away) and away[-1][1] is None
    return ResourceStatus(
        machine=str(entry.get("machine", "")),
        name=str(entry["name"]),
        key=str(entry.get("device_key", "")),
        slots=int(entry.get("slots", 1)),
        utilisation=float(picture.get("utilisation", 0.0)),
        queue=int(picture.get("queue", 0)),
        state=f"away: {entry.get('why_away', '')}" if gone else str(picture.get("now", "")) or "idle",
    )
