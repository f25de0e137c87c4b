"""What a tuning run measured, as a recording."""

import json
from collections.abc import Sequence

from tuneloom.errors import RecordsError
from tuneloom.model import Failure, Measurement, Trial
from tuneloom.tuners.replay.recording import Entry, Recording, RowCollector


def recording_of(name: str, trials: Sequence[Trial]) -> Recording:
    """The trials of one kernel; raises RecordsError if none was measured or they differ in their knobs."""
    rows = [json.loads(trial.candidate.configuration) for trial in trials]
    knobs = list(rows[0]) if rows else []
    collector = RowCollector(name, knobs)
    for place, (values, trial) in enumerate(zip(rows, trials, strict=True)):
        if list(values) != knobs:
            raise RecordsError(f"{name}: trial {place} has other knobs than the first: {', '.join(values)}")
        collector.add(f"trial {place}", tuple(values.values()), _entry(trial))
    return collector.recording()


def _entry(trial: Trial) -> Entry:
    match trial.outcome:
        case Measurement() as measured:
            return Entry(measured.best_s * 1e3, None, measured.profile_s * 1e3)
        case Failure(kind=kind):
            return Entry(None, kind)
