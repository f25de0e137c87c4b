"""Jobs, records and events in SQLite or PostgreSQL: one schema, one interface."""

from tuneloom.store.api import JobStore, LogStore, RunStore, Store, TrialStore
from tuneloom.store.opening import default_place, open_existing, open_store
from tuneloom.store.records import (
    BankRow,
    EventRecord,
    JobRecord,
    JobStatus,
    Json,
    PlannedTask,
    Provenance,
    RunRecord,
    RunStatus,
    SpanRecord,
    TrialRecord,
    WorkloadRecord,
)

__all__ = [
    "BankRow",
    "EventRecord",
    "JobRecord",
    "JobStatus",
    "JobStore",
    "Json",
    "LogStore",
    "PlannedTask",
    "Provenance",
    "RunRecord",
    "RunStatus",
    "RunStore",
    "SpanRecord",
    "Store",
    "TrialRecord",
    "TrialStore",
    "WorkloadRecord",
    "default_place",
    "open_existing",
    "open_store",
]
