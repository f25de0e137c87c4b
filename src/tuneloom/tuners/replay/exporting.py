"""What a tuning run measured, as a recording."""

import json
from collections.abc import Sequence

from tuneloom.model import Failure, Measurement, Trial
from tuneloom.tuners.kernel.space import Space
from tuneloom.tuners.replay.recording import Entry, Recording, RowCollector


def recording_of(name: str, space: Space, trials: Sequence[Trial]) -> Recording:
    """The trials of one space; raises RecordsError if none was measured."""
    collector = RowCollector(name, space.names)
    for place, trial in enumerate(trials):
        values = json.loads(trial.candidate.configuration)
        collector.add(f"trial {place}", tuple(values[knob] for knob in space.names), _entry(trial))
    return collector.recording()


def _entry(trial: Trial) -> Entry:
    match trial.outcome:
        case Measurement() as measured:
            return Entry(measured.best_s * 1e3, None, measured.profile_s * 1e3)
        case Failure(kind=kind):
            return Entry(None, kind)
