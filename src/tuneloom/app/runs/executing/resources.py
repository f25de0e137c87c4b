"""The resources of a run as its note tells them: all that ever joined, and when they were away."""

from collections.abc import Iterable, Mapping
from typing import Any

from tuneloom.engine.machine import Offer
from tuneloom.model import Host

RESOURCES = "resources"
"""The name of the note."""


class ResourceList:
    """Keeps the list; times are of the run's clock."""

    def __init__(self) -> None:
        self._entries: dict[str, dict[str, Any]] = {}

    def joined(self, offer: Offer, at_s: float) -> None:
        """A resource came, or came back."""
        resource = offer.resource
        known = self._entries.get(resource.name)
        if known is not None:
            if known["away"]:
                known["away"][-1][1] = at_s
            return
        slots = resource.slots if isinstance(resource, Host) else 1
        entry = {"name": resource.name, "slots": slots, "machine": resource.machine, "joined_s": at_s}
        if not isinstance(resource, Host):
            entry["device_key"] = resource.key
        if offer.cores:
            entry["cores"] = sorted(offer.cores)
        self._entries[resource.name] = entry | {"away": []}

    def left(self, name: str, reason: str, at_s: float) -> None:
        """A resource went; `reason` says why, for people."""
        self._entries[name]["away"].append([at_s, None])
        self._entries[name]["why_away"] = reason

    def disturbed(self, name: str, by: str, at_s: float) -> None:
        """Others use a resource, too, or do so no more."""
        self._entries[name].setdefault("disturbed", []).append([at_s, by])

    def shared(self, name: str, by: str, at_s: float) -> None:
        """Another process measures on a resource in turn, or does so no more."""
        self._entries[name].setdefault("shared", []).append([at_s, by])

    def waited_for(self, name: str, seconds: float) -> None:
        """A stage waited for another process before it got a resource."""
        entry = self._entries[name]
        entry["waits"] = entry.get("waits", 0) + 1
        entry["waited_s"] = entry.get("waited_s", 0.0) + seconds

    def note(self) -> list[dict[str, Any]]:
        """The list as plain data."""
        return list(self._entries.values())


def present_keys(note: Iterable[Mapping[str, Any]] | None) -> list[str]:
    """The keys of the devices that are there now, as the note of a run tells."""
    return sorted({str(each["device_key"]) for each in note or () if each.get("device_key") and _here(each)})


def _here(entry: Mapping[str, Any]) -> bool:
    away = entry.get("away")
    return not away or away[-1][1] is not None
