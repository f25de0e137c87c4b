"""Notes of a run as parts of a report."""

from collections.abc import Mapping
from typing import Any

from tuneloom.report import Fact, KnobPair, ResourceInfo, Validity, ValidityCell

DRAWN = frozenset({"resources", "canary", "validity"})
"""Notes that have a section of their own."""


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


def resources_of(listed: Any) -> tuple[ResourceInfo, ...]:
    """The resources a run had."""
    return tuple(
        ResourceInfo(name=each["name"], slots=each.get("slots", 1), device_key=each.get("device_key"))
        for each in listed or ()
    )


def validity_of(note: Any) -> Validity | None:
    """What failed where, if a knob space was tuned.

    A pair is `{"x_knob", "y_knob", "x_values", "y_values", "cells"}`, its cells are lists
    `[x, y, valid, invalid, predicted]`, the last being a probability or null.
    """
    if not note:
        return None
    importance = tuple((str(knob), float(share)) for knob, share in note.get("importance", {}).items())
    return Validity(pairs=tuple(_pair(pair) for pair in note.get("pairs", ())), importance=importance)


def _pair(pair: Mapping[str, Any]) -> KnobPair:
    cells = tuple(
        ValidityCell(x=str(x), y=str(y), valid=valid, invalid=invalid, predicted=predicted)
        for x, y, valid, invalid, predicted in pair["cells"]
    )
    return KnobPair(
        x_knob=pair["x_knob"],
        y_knob=pair["y_knob"],
        x_values=tuple(map(str, pair["x_values"])),
        y_values=tuple(map(str, pair["y_values"])),
        cells=cells,
    )


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
