"""JSON output of KTT: `Results`, each with its `Configuration` and times in the unit of `Metadata`."""

import json
from math import isfinite
from typing import Any

from tuneloom.errors import RecordsError
from tuneloom.model import FailureKind
from tuneloom.tuners.replay.recording import Entry, Recording, Row, RowCollector

_UNITS = {"Nanoseconds": 1e-6, "Microseconds": 1e-3, "Milliseconds": 1.0, "Seconds": 1e3}
_STATUS = {
    "CompilationFailed": FailureKind.BUILD_ERROR,
    "DeviceLimitsExceeded": FailureKind.RUN_ERROR,
    "ComputationFailed": FailureKind.RUN_ERROR,
    "ValidationFailed": FailureKind.WRONG_RESULT,
}
_NAMES = {
    FailureKind.BUILD_ERROR: "CompilationFailed",
    FailureKind.BUILD_TIMEOUT: "CompilationFailed",
    FailureKind.WRONG_RESULT: "ValidationFailed",
}


def parsed(name: str, data: dict[str, Any]) -> Recording:
    """Read KTT's output; raises RecordsError naming the result that is wrong."""
    unit = data.get("Metadata", {}).get("TimeUnit", "Microseconds")
    if unit not in _UNITS:
        raise RecordsError(f"{name}: unknown time unit {unit!r}; known: {', '.join(_UNITS)}")
    if not data["Results"]:
        raise RecordsError(f"{name}: no results")
    knobs = [knob for knob, _ in _pairs(name, 0, data["Results"][0])]
    collector = RowCollector(name, knobs)
    for index, result in enumerate(data["Results"]):
        pairs = dict(_pairs(name, index, result))
        if list(pairs) != knobs:
            raise RecordsError(f"{name}, result {index}: its knobs differ from the first result's")
        row: Row = tuple(pairs.values())
        collector.add(f"result {index}", row, _entry(result, _UNITS[unit]))
    return collector.recording()


def _pairs(name: str, index: int, result: dict[str, Any]) -> list[tuple[str, Any]]:
    try:
        return [(str(pair["Name"]), pair["Value"]) for pair in result["Configuration"]]
    except (KeyError, TypeError):
        raise RecordsError(f"{name}, result {index}: `Configuration` is missing or malformed") from None


def _entry(result: dict[str, Any], to_ms: float) -> Entry:
    cost = to_ms * sum(
        float(value)
        for value in (result.get("TotalOverhead"), result.get("TotalDuration"))
        if isinstance(value, int | float) and isfinite(value) and 0 < value < 1e18
    )
    status, time = result.get("Status", "Ok"), result.get("TotalDuration")
    if status != "Ok":
        return Entry(None, _STATUS.get(str(status), FailureKind.RUN_ERROR), cost)
    if not isinstance(time, int | float) or not (isfinite(time) and 0 < time < 1e18):
        return Entry(None, FailureKind.RUN_ERROR, cost)
    return Entry(float(time) * to_ms, None, cost)


def written(recording: Recording) -> str:
    """The recording as KTT would write it."""
    results = [_result(recording, row, entry) for row, entry in recording.entries.items()]
    head = {"ComputeApi": "recorded", "Device": "recorded", "TimeUnit": "Milliseconds"}
    return json.dumps({"Metadata": head, "Results": results})


def _result(recording: Recording, row: Row, entry: Entry) -> dict[str, Any]:
    pairs = [{"Name": knob, "Value": value} for knob, value in zip(recording.knobs, row, strict=True)]
    status = "Ok" if entry.failure is None else _NAMES.get(entry.failure, "ComputationFailed")
    time = entry.time_ms or 0.0
    costs = {"TotalDuration": time, "TotalOverhead": max(entry.cost_ms - time, 0.0)}
    return {"Configuration": pairs, "KernelName": recording.name, "Status": status, **costs}
