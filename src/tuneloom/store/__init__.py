"""Jobs, records and events in SQLite or PostgreSQL: one schema, one interface."""

from tuneloom.store.api import JobStore, LeaseStore, LogStore, RunStore, Store, TrialStore, WishStore
from tuneloom.store.opening import default_place, open_existing, open_store
from tuneloom.store.records import (
    BankRow,
    EventRecord,
    JobRecord,
    JobStatus,
    Json,
    Lease,
    PlannedTask,
    Provenance,
    RunRecord,
    RunStatus,
    SpanRecord,
    TrialRecord,
    Wish,
    WishKind,
    WorkloadRecord,
)

__all__ = [
    "BankRow",
    "EventRecord",
    "JobRecord",
    "JobStatus",
    "JobStore",
    "Json",
    "Lease",
    "LeaseStore",
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
    "Wish",
    "WishKind",
    "WishStore",
    "WorkloadRecord",
    "default_place",
    "open_existing",
    "open_store",
]
