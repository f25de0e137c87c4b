"""Cache files of Kernel Tuner: one JSON object per configuration under `cache`."""

import json
from math import isfinite
from typing import Any

from tuneloom.errors import RecordsError
from tuneloom.model import FailureKind
from tuneloom.tuners.replay.recording import Entry, Recording, Row, RowCollector

_ERRORS = {
    "CompilationFailedConfig": FailureKind.BUILD_ERROR,
    "RuntimeFailedConfig": FailureKind.RUN_ERROR,
    "InvalidConfig": FailureKind.BUILD_ERROR,
}
_NAMES = {
    FailureKind.BUILD_ERROR: "CompilationFailedConfig",
    FailureKind.BUILD_TIMEOUT: "CompilationFailedConfig",
}
_FAILED_FROM = 1e19  # older versions wrote a huge number as the time of a failure


def parsed(name: str, data: dict[str, Any]) -> Recording:
    """Read a cache file; raises RecordsError naming the entry that is wrong."""
    knobs = data.get("tune_params_keys")
    if not isinstance(knobs, list) or not knobs or not isinstance(data["cache"], dict):
        raise RecordsError(f"{name}: a Kernel Tuner cache needs `tune_params_keys` and `cache`")
    collector = RowCollector(name, knobs)
    for key, fields in data["cache"].items():
        place = f"entry {key!r}"
        if not isinstance(fields, dict):
            raise RecordsError(f"{name}, {place}: an object is expected")
        collector.add(place, _row(name, place, knobs, fields), _entry(fields))
    return collector.recording()


def _row(name: str, place: str, knobs: list[str], fields: dict[str, Any]) -> Row:
    missing = [knob for knob in knobs if not isinstance(fields.get(knob), int | float | str)]
    if missing:
        raise RecordsError(f"{name}, {place}: the knob {missing[0]!r} is missing")
    return tuple(fields[knob] for knob in knobs)


def _entry(fields: dict[str, Any]) -> Entry:
    parts = (fields.get(part) for part in ("compile_time", "verification_time", "benchmark_time"))
    cost = sum(float(part) for part in parts if isinstance(part, int | float) and isfinite(part))
    time = fields.get("time")
    error = fields.get("__error__", time if isinstance(time, str) else None)
    if error is not None:
        return Entry(None, _ERRORS.get(str(error), FailureKind.RUN_ERROR), cost)
    if not isinstance(time, int | float) or not 0 < time < _FAILED_FROM:
        return Entry(None, FailureKind.RUN_ERROR, cost)
    return Entry(float(time), None, cost)


def closed(text: str) -> Any | None:
    """A cache whose last brackets are missing, as an interrupted run leaves it; None if it is not one."""
    head = text.rstrip().rstrip(",")
    for ending in ("}}", "}\n}", "}"):
        try:
            data = json.loads(head + ending)
        except json.JSONDecodeError:
            continue
        if isinstance(data, dict) and "cache" in data:
            return data
    return None


def written(recording: Recording) -> str:
    """The recording as a cache file that Kernel Tuner's simulation mode accepts."""
    names = recording.knobs
    values = {name: list(recording.space.knobs[name]) for name in names}
    cache = {",".join(map(str, row)): _fields(names, row, entry) for row, entry in recording.entries.items()}
    head = {
        "device_name": "recorded",
        "kernel_name": recording.name,
        "problem_size": "",
        "tune_params_keys": list(names),
        "tune_params": values,
        "objective": "time",
    }
    return json.dumps({**head, "cache": cache}, indent=0)


def _fields(names: tuple[str, ...], row: Row, entry: Entry) -> dict[str, Any]:
    fields: dict[str, Any] = dict(zip(names, row, strict=True))
    if entry.failure is None:
        fields |= {"time": entry.time_ms, "times": [entry.time_ms]}
    else:
        error = _NAMES.get(entry.failure, "RuntimeFailedConfig")
        fields |= {"time": error, "__error__": error}
    costs = {"compile_time": 0.0, "verification_time": 0, "benchmark_time": entry.cost_ms}
    return {
        **fields,
        **costs,
        "strategy_time": 0,
        "framework_time": 0,
        "timestamp": "1970-01-01 00:00:00+00:00",
    }
