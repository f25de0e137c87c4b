"""The tables as queries see them; the migrations create them, a test compares the two."""

from typing import Any

from sqlalchemy import BigInteger, Column, Float, LargeBinary, MetaData, Table, Text
from sqlalchemy.types import TypeEngine

METADATA = MetaData()
_TYPES: dict[str, TypeEngine[Any]] = {
    "wholes": BigInteger(),
    "texts": Text(),
    "floats": Float(53),
    "data": LargeBinary(),
}


def _table(name: str, **columns: str) -> Table:
    """A table; its columns are listed by type, those of its key with `*`, those that may be null with `?`."""
    made = [_column(word, kind) for kind, words in columns.items() for word in words.split()]
    return Table(name, METADATA, *made)


def _column(word: str, kind: str) -> Column[Any]:
    key, empty = word.endswith("*"), word.endswith("?")
    return Column(word.rstrip("*?"), _TYPES[kind], primary_key=key, nullable=empty)


RUNS = _table(
    "runs",
    wholes="number* pid",
    texts="id command options status message host boot pid_namespace pid_started",
    floats="created ended?",
)
NOTES = _table("notes", wholes="number*", texts="run name content")
JOBS = _table(
    "jobs", wholes="number", texts="id* run name spec status result", floats="created? started? ended?"
)
WORKLOADS = _table(
    "workloads",
    wholes="number*",
    texts="task_key tvm_version name kernel_class shapes family target",
    floats="gflop",
    data="payload",
)
TASKS = _table(
    "tasks",
    wholes="number* weight",
    texts="job task_key tvm_version name shapes kernel_class plan",
    floats="gflop",
)
PROVENANCES = _table("provenances", wholes="id*", texts="family target device_key tvm_version")
PROVENANCES.append_column(Column("policy", Text, key="measuring", nullable=False))  # older than the word
TRIALS = _table(
    "trials",
    wholes="id* provenance",
    texts="job task_key candidate kernel_class family origin outcome message seconds features",
    floats="best_s? build_s profile_s created",
    data="configuration",
)
SPANS = _table(
    "spans", wholes="id* slots", texts="run job task kind resource", floats="start_s end_s ready_s?"
)
EVENTS = _table("events", wholes="id*", texts="run kind body", floats="at_s")
LEASES = _table(
    "leases",
    wholes="epoch pid",
    texts="run* holder host boot pid_namespace pid_started",
    floats="expires",
)
WISHES = _table("wishes", wholes="number*", texts="run kind body job?", floats="created applied?")
VIEWS = _table("views", texts="run* content", floats="updated")
BLOBS = _table("blobs", texts="digest*", wholes="number*", data="content")
BLOB_USES = _table("blob_uses", texts="digest* owner*")

TENANTS = _table(
    "tenants",
    texts="id*",
    floats="created weight",
    wholes="jobs_at_once trials_a_day bytes_stored most_priority shares_records",
)
TOKENS = _table("tokens", texts="id* tenant name role digest", floats="created expires? revoked?")
MODELS = _table(
    "models", wholes="number* size_bytes", texts="tenant digest name state summary", floats="created"
)
SUBMISSIONS = _table(
    "submissions",
    wholes="number* trials priority",
    texts="run tenant token model request idempotency_key?",
    floats="created",
)
SHARES = _table("shares", texts="tenant* device_key*", floats="used_s")
BUNDLES = _table("bundles", texts="run* digest", wholes="size_bytes", floats="created")
AUDIT = _table("audit", wholes="number*", texts="tenant token action subject request_id detail", floats="at")
SESSIONS = _table("sessions", texts="digest* token", floats="created expires")
