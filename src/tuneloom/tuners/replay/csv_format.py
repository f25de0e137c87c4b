"""Our own format: a column a knob, then `status`, `time_ms` and, if known, `eval_cost_ms`."""

import csv
import io
from math import isfinite, isnan

from tuneloom.errors import RecordsError
from tuneloom.model import FailureKind
from tuneloom.tuners.kernel.space import KnobValue
from tuneloom.tuners.replay.recording import Entry, Recording, RowCollector

_RESULTS = ("status", "time_ms", "eval_cost_ms")
_STATUS = {
    "compile_error": FailureKind.BUILD_ERROR,
    "runtime_error": FailureKind.RUN_ERROR,
    "ktt_computation_failed": FailureKind.RUN_ERROR,
    **{kind.value: kind for kind in FailureKind},
}


def parsed(name: str, text: str) -> Recording:
    """Read the format; raises RecordsError with the line of what is wrong."""
    reader = csv.DictReader(io.StringIO(text))
    columns = list(reader.fieldnames or [])
    missing = [column for column in ("status", "time_ms") if column not in columns]
    if missing:
        raise RecordsError(f"{name}: the column {missing[0]!r} is missing; found: {', '.join(columns)}")
    if len(set(columns)) != len(columns):
        raise RecordsError(f"{name}: a column name appears twice: {', '.join(columns)}")
    knobs = [column for column in columns if column not in _RESULTS]
    collector = RowCollector(name, knobs)
    for fields in reader:
        place = f"line {reader.line_num}"
        if None in fields or None in fields.values():
            raise RecordsError(f"{name}, {place}: {len(columns)} fields are expected")
        collector.add(place, tuple(value_of(fields[knob]) for knob in knobs), _entry(name, place, fields))
    return collector.recording()


def _entry(name: str, place: str, fields: dict[str, str]) -> Entry:
    cost = _number(name, place, fields.get("eval_cost_ms") or "0")
    cost = 0.0 if isnan(cost) else cost
    status = fields["status"].strip()
    if status != "ok":
        if status not in _STATUS:
            known = ", ".join(["ok", *_STATUS])
            raise RecordsError(f"{name}, {place}: unknown status {status!r}; known: {known}")
        return Entry(None, _STATUS[status], cost)
    time = _number(name, place, fields["time_ms"] or "nan")
    if not isfinite(time) or time <= 0:
        return Entry(None, FailureKind.RUN_ERROR, cost)
    return Entry(time, None, cost)


def _number(name: str, place: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise RecordsError(f"{name}, {place}: {text!r} is not a number") from None


def value_of(text: str) -> KnobValue:
    """A knob value as the narrowest of whole number, number and text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def written(recording: Recording) -> str:
    """The recording in this format."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*recording.knobs, *_RESULTS])
    for row, entry in recording.entries.items():
        status = "ok" if entry.failure is None else entry.failure.value
        time = "" if entry.time_ms is None else repr(entry.time_ms)
        writer.writerow([*row, status, time, f"{entry.cost_ms:g}"])
    return out.getvalue()
