"""Rows of the table of trials: as records, and whose may be read by whom."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Row, select, true

from tuneloom.model import Candidate, Failure, FailureKind, Measurement, Outcome, ProposalReason, Trial
from tuneloom.store.database.encoding import from_json, from_row, unpack_text
from tuneloom.store.database.tables import JOBS, PROVENANCES, SUBMISSIONS, TENANTS, TRIALS
from tuneloom.store.records import Provenance, TrialRecord

OK = "ok"
"""The outcome of a trial that ended in a measurement; other outcomes are kinds of failure."""
_COUNTED = "device:"
"""How names of counters begin among the features of a trial."""
CONTEST = "contest:s"
"""Where the features of a trial have its time in a contest."""
_WHY = "search:why"
"""Where the features of a trial have the reason for which it was proposed."""
_NO_FEATURES = (_COUNTED, CONTEST, _WHY)

RECORDS = select(
    TRIALS,
    PROVENANCES.c.target,
    PROVENANCES.c.device_key,
    PROVENANCES.c.measuring.label("measuring"),
    PROVENANCES.c.tvm_version,
).select_from(TRIALS.join(PROVENANCES, TRIALS.c.provenance == PROVENANCES.c.id))
"""All trials with their provenance, to be narrowed down."""


def kept_features(features: Mapping[str, float], trial: Trial) -> dict[str, Any]:
    """What a row keeps besides times: what the compiler revealed, what the device counted, and the reason."""
    outcome, reason = trial.outcome, trial.candidate.reason
    counted = outcome.counters if isinstance(outcome, Measurement) else {}
    why = {} if reason is None else {_WHY: reason.plain()}
    return {**features, **{f"{_COUNTED}{name}": value for name, value in counted.items()}, **why}


def record_of(row: Row[Any]) -> TrialRecord:
    """The record that one row of RECORDS holds."""
    configuration, features = unpack_text(row.configuration), from_json(row.features)
    reason = ProposalReason.of(features.get(_WHY))
    candidate = Candidate(key=row.candidate, configuration=configuration, origin=row.origin, reason=reason)
    return from_row(
        TrialRecord,
        row,
        trial=Trial(candidate=candidate, outcome=_outcome(row, features)),
        provenance=from_row(Provenance, row),
        contest_s=features.get(CONTEST),
        features={name: value for name, value in features.items() if not name.startswith(_NO_FEATURES)},
    )


def readable(rows: Iterable[Row[Any]]) -> Iterator[TrialRecord]:
    """The records of rows; a damaged one is left out, so that it hides no other."""
    for row in rows:
        try:
            yield record_of(row)
        except (ValueError, TypeError, zlib.error):
            continue


def _outcome(row: Row[Any], features: Mapping[str, float]) -> Outcome:
    if row.outcome == OK:
        counted = {n.removeprefix(_COUNTED): v for n, v in features.items() if n.startswith(_COUNTED)}
        times = tuple(from_json(row.seconds))
        return Measurement(seconds=times, profile_s=row.profile_s, counters=counted)
    return Failure(kind=FailureKind(row.outcome), message=row.message)


def readable_by(reader: str | None) -> ColumnElement[bool]:
    """The condition for trials that a tenant may learn from; None reads everything.

    Its own, those that no tenant made, and those of tenants who share theirs. A tenant that stops
    sharing takes all of its records back, also those made before.
    """
    if reader is None:
        return true()
    owned = JOBS.join(SUBMISSIONS, SUBMISSIONS.c.run == JOBS.c.run)
    owned = owned.join(TENANTS, TENANTS.c.id == SUBMISSIONS.c.tenant)
    private = select(JOBS.c.id).select_from(owned).where(JOBS.c.id == TRIALS.c.job)
    private = private.where(SUBMISSIONS.c.tenant != reader, TENANTS.c.shares_records == 0)
    return ~private.correlate(TRIALS).exists()
