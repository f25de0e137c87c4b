"""Notes, specifications and provenance as parts of a report."""

from collections.abc import Mapping, Sequence
from typing import Any

from tuneloom.report import Fact, ResourceInfo
from tuneloom.store import Provenance

DRAWN = frozenset({"resources", "canary", "clock"})
"""Notes that have a section of their own, or that only programs read."""

TOLD_OF_SPECS = ("tuner", "batch", "seed", "layout")
"""What a job's specification says about how it was measured."""


def facts_of(notes: Mapping[str, Any]) -> tuple[Fact, ...]:
    """The notes that are read as they are; a mapping becomes one fact for each of its keys."""
    facts = []
    for name, value in notes.items():
        if name in DRAWN:
            continue
        if isinstance(value, Mapping):
            facts += [Fact(name=f"{_spoken(name)}: {key}", value=_shown(each)) for key, each in value.items()]
        else:
            facts.append(Fact(name=_spoken(name), value=_shown(value)))
    return tuple(facts)


def measuring_facts(
    specs: Sequence[Mapping[str, Any]], provenances: Sequence[Provenance]
) -> tuple[Fact, ...]:
    """What all trials of a run have in common, and where they differ all the values."""
    found = {
        "TVM": [provenance.tvm_version for provenance in provenances],
        "target": [provenance.target for provenance in provenances],
        "device": [provenance.device_key for provenance in provenances],
        "measuring rules": [provenance.measuring for provenance in provenances],
        **{name: [_shown(spec[name]) for spec in specs if name in spec] for name in TOLD_OF_SPECS},
    }
    different = {name: list(dict.fromkeys(filter(None, values))) for name, values in found.items()}
    return tuple(Fact(name=name, value=", ".join(values)) for name, values in different.items() if values)


def resources_of(listed: Any) -> tuple[ResourceInfo, ...]:
    """The resources a run had, those of one machine together."""
    machines = list(dict.fromkeys(each.get("machine", "") for each in listed or ()))
    ordered = sorted(listed or (), key=lambda each: machines.index(each.get("machine", "")))
    return tuple(
        ResourceInfo(
            name=each["name"],
            slots=each.get("slots", 1),
            device_key=each.get("device_key"),
            machine=each.get("machine", ""),
            joined_s=each.get("joined_s", 0.0),
            away=tuple((left_s, back_s) for left_s, back_s in each.get("away", ())),
            why_away=each.get("why_away", ""),
        )
        for each in ordered
    )


def disturbed_facts(listed: Any) -> tuple[Fact, ...]:
    """Who else used which resource, and when."""
    return tuple(
        Fact(name=f"{each['name']}: also used by", value=_over_time(each["disturbed"]))
        for each in listed or ()
        if each.get("disturbed")
    )


def shared_facts(listed: Any) -> tuple[Fact, ...]:
    """Which resource was shared with other processes, and how long stages waited for these."""
    return tuple(
        Fact(name=f"{each['name']}: shared with", value=f"{_over_time(_sharers(each))}; {_waits(each)}")
        for each in listed or ()
        if each.get("shared") or each.get("waits")
    )


def _sharers(entry: Mapping[str, Any]) -> Sequence[tuple[float, str]]:
    return entry.get("shared") or [(entry.get("joined_s", 0.0), "another process")]


def _waits(entry: Mapping[str, Any]) -> str:
    """Locks keep measurements apart, so whatever was measured had the device to itself."""
    waits, waited_s = entry.get("waits", 0), entry.get("waited_s", 0.0)
    stages = "1 stage" if waits == 1 else f"{waits} stages"
    return f"{stages} waited for the device, {waited_s:.1f} s in all; no two measurements overlapped"


def _over_time(users: Sequence[tuple[float, str]]) -> str:
    return ", ".join(f"{by or 'nobody'} from {at_s:.0f} s" for at_s, by in users)


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _shown(value: Any) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}"
        case list():
            return ", ".join(map(_shown, value))
        case dict():
            return ", ".join(f"{key} {_shown(each)}" for key, each in value.items())
        case _:
            return str(value)
