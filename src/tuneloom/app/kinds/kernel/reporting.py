"""What a report says of kernels with knobs."""

from collections.abc import Mapping, Sequence
from typing import Any

from tuneloom.report import KnobPair, Validity, ValidityCell
from tuneloom.store import JobRecord, TrialRecord


def validity_of(job: JobRecord, records: Sequence[TrialRecord]) -> Validity | None:
    """What failed where, if a kernel with knobs was tuned.

    A job that ended has told what it learned. Of one that was interrupted, the trials
    still tell what failed where.
    """
    if not records:
        return None
    note = job.result.get("validity") or _of_trials(records)
    importance = tuple((str(knob), float(share)) for knob, share in note.get("importance", {}).items())
    pairs = tuple(_pair(pair) for pair in note.get("pairs", ()))
    return Validity(kernel=job.name, pairs=pairs, importance=importance)


def _of_trials(records: Sequence[TrialRecord]) -> dict[str, Any]:
    from tuneloom.tuners.kernel.search.insight import insight_of_trials

    return insight_of_trials([record.trial for record in records])


def _pair(pair: Mapping[str, Any]) -> KnobPair:
    """A pair as a job's result has it: its cells are lists `[x, y, valid, invalid, predicted]`."""
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
