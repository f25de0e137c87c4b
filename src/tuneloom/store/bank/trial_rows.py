"""Rows of the table of trials as records."""

import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Row, select

from tuneloom.model import Candidate, Failure, FailureKind, Measurement, Outcome, Trial
from tuneloom.store.database.encoding import from_json, unpack_text
from tuneloom.store.database.tables.runs import PROVENANCES, TRIALS
from tuneloom.store.records import Provenance, TrialRecord

OK = "ok"
"""The outcome of a trial that ended in a measurement; other outcomes are kinds of failure."""

RECORDS = select(
    TRIALS,
    PROVENANCES.c.target,
    PROVENANCES.c.device_key,
    PROVENANCES.c.measuring.label("measuring"),
    PROVENANCES.c.tvm_version,
).select_from(TRIALS.join(PROVENANCES, TRIALS.c.provenance == PROVENANCES.c.id))
"""All trials with their provenance, to be narrowed down."""


def record_of(row: Row[Any]) -> TrialRecord:
    """The record that one row of RECORDS holds."""
    configuration = unpack_text(row.configuration)
    candidate = Candidate(key=row.candidate, configuration=configuration, origin=row.origin)
    return TrialRecord(
        id=row.id,
        job=row.job,
        task_key=row.task_key,
        kernel_class=row.kernel_class,
        trial=Trial(candidate=candidate, outcome=_outcome(row)),
        provenance=_provenance(row),
        build_s=row.build_s,
        features=from_json(row.features),
        created=row.created,
    )


def readable(rows: Iterable[Row[Any]]) -> Iterator[TrialRecord]:
    """The records of rows; a damaged one is left out, so that it hides no other."""
    for row in rows:
        try:
            yield record_of(row)
        except (ValueError, TypeError, zlib.error):
            continue


def _outcome(row: Row[Any]) -> Outcome:
    if row.outcome == OK:
        return Measurement(seconds=tuple(from_json(row.seconds)), profile_s=row.profile_s)
    return Failure(kind=FailureKind(row.outcome), message=row.message)


def _provenance(row: Row[Any]) -> Provenance:
    return Provenance(
        family=row.family,
        target=row.target,
        device_key=row.device_key,
        measuring=row.measuring,
        tvm_version=row.tvm_version,
    )
