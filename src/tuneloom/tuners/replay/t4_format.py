"""T4 results, the exchange format of the autotuning community: `results` with `invalidity`."""

import json
from math import isfinite
from statistics import fmean
from typing import Any

from tuneloom.errors import RecordsError
from tuneloom.model import FailureKind
from tuneloom.tuners.replay.recording import Entry, Recording, Row, RowCollector

_UNITS = {"seconds": 1e3, "milliseconds": 1.0, "miliseconds": 1.0, "microseconds": 1e-3, "nanoseconds": 1e-6}
_INVALIDITY = {
    "timeout": FailureKind.RUN_TIMEOUT,
    "compile": FailureKind.BUILD_ERROR,
    "runtime": FailureKind.RUN_ERROR,
    "correctness": FailureKind.WRONG_RESULT,
    "constraints": FailureKind.BUILD_ERROR,
}
_NAMES = {
    FailureKind.BUILD_ERROR: "compile",
    FailureKind.BUILD_TIMEOUT: "compile",
    FailureKind.RUN_ERROR: "runtime",
    FailureKind.RUN_TIMEOUT: "timeout",
    FailureKind.WRONG_RESULT: "correctness",
    FailureKind.WORKER_LOST: "runtime",
}


def parsed(name: str, data: dict[str, Any]) -> Recording:
    """Read T4 results; raises RecordsError naming the result that is wrong."""
    unit = str(data.get("metadata", {}).get("timeunit", "milliseconds")).lower()
    if unit not in _UNITS:
        raise RecordsError(f"{name}: unknown time unit {unit!r}; known: {', '.join(_UNITS)}")
    if not data["results"]:
        raise RecordsError(f"{name}: no results")
    knobs = list(_configuration(name, 0, data["results"][0]))
    collector = RowCollector(name, knobs)
    for index, result in enumerate(data["results"]):
        values = _configuration(name, index, result)
        if set(values) != set(knobs):
            raise RecordsError(f"{name}, result {index}: its knobs differ from the first result's")
        row: Row = tuple(values[knob] for knob in knobs)
        collector.add(f"result {index}", row, _entry(result, _UNITS[unit]))
    return collector.recording()


def _configuration(name: str, index: int, result: Any) -> dict[str, Any]:
    values = result.get("configuration") if isinstance(result, dict) else None
    if not isinstance(values, dict) or not values:
        raise RecordsError(f"{name}, result {index}: `configuration` is missing")
    return values


def _entry(result: dict[str, Any], to_ms: float) -> Entry:
    times = result.get("times") or {}
    runs = [float(run) for run in times.get("runtimes") or [] if _usable(run)]
    costs: list[Any] = [times.get(part) for part in ("compilation", "compilation_time", "validation")]
    cost = to_ms * (sum([float(c) for c in costs if _usable(c)]) + sum(runs))
    invalidity = result.get("invalidity", "correct")
    if invalidity != "correct":
        return Entry(None, _INVALIDITY.get(str(invalidity), FailureKind.RUN_ERROR), cost)
    time = _measured(result, runs)
    return Entry(None, FailureKind.RUN_ERROR, cost) if time is None else Entry(time * to_ms, None, cost)


def _measured(result: dict[str, Any], runs: list[float]) -> float | None:
    objective = (result.get("objectives") or ["time"])[0]
    for measurement in result.get("measurements") or []:
        if measurement.get("name") == objective and _usable(measurement.get("value")):
            return float(measurement["value"])
    return fmean(runs) if runs else None


def _usable(value: Any) -> bool:
    return isinstance(value, int | float) and isfinite(value) and 0 < value < 1e18


def written(recording: Recording) -> str:
    """The recording as T4 results."""
    results = [_result(recording, row, entry) for row, entry in recording.entries.items()]
    return json.dumps(
        {"schema_version": "1.0.0", "metadata": {"timeunit": "milliseconds"}, "results": results}
    )


def _result(recording: Recording, row: Row, entry: Entry) -> dict[str, Any]:
    valid = entry.failure is None
    runs = [entry.time_ms] if valid else []
    return {
        "timestamp": "1970-01-01 00:00:00+00:00",
        "configuration": dict(zip(recording.knobs, row, strict=True)),
        "times": {
            "compilation": max(entry.cost_ms - (entry.time_ms or 0.0), 0.0),
            "runtimes": runs,
            "validation": 0,
        },
        "invalidity": "correct" if entry.failure is None else _NAMES[entry.failure],
        "correctness": 1 if valid else 0,
        "measurements": [{"name": "time", "value": entry.time_ms, "unit": "ms"}] if valid else [],
        "objectives": ["time"],
    }
