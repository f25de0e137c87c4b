"""The tables of runs, jobs, trials and files."""

from sqlalchemy import BigInteger, Column, Float, Integer, LargeBinary, MetaData, Table, Text

METADATA = MetaData()


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


def _floats(*names: str) -> list[Column[float]]:
    return [Column(name, Float(53), nullable=False) for name in names]


RUNS = Table(
    "runs",
    METADATA,
    Column("number", Integer, primary_key=True),
    *_texts("id", "command", "options", "status", "message", "host", "boot", "pid_namespace", "pid_started"),
    *_floats("created"),
    Column("ended", Float(53)),
    Column("pid", Integer, nullable=False),
)
NOTES = Table(
    "notes", METADATA, Column("number", Integer, primary_key=True), *_texts("run", "name", "content")
)
JOBS = Table(
    "jobs",
    METADATA,
    Column("id", Text, primary_key=True),
    *_texts("run", "name", "spec", "status", "result"),
    Column("number", Integer, nullable=False),
    Column("created", Float(53)),
    Column("started", Float(53)),
    Column("ended", Float(53)),
)
WORKLOADS = Table(
    "workloads",
    METADATA,
    Column("number", Integer, primary_key=True),
    *_texts("task_key", "tvm_version", "name", "kernel_class", "shapes", "family", "target"),
    *_floats("gflop"),
    Column("payload", LargeBinary, nullable=False),
)
TASKS = Table(
    "tasks",
    METADATA,
    Column("number", Integer, primary_key=True),
    *_texts("job", "task_key", "tvm_version", "name", "shapes", "kernel_class", "plan"),
    *_floats("gflop"),
    Column("weight", Integer, nullable=False),
)
PROVENANCES = Table(
    "provenances",
    METADATA,
    Column("id", Integer, primary_key=True),
    *_texts("family", "target", "device_key", "tvm_version"),
    Column("policy", Text, key="measuring", nullable=False),  # the column is older than the word
)
TRIALS = Table(
    "trials",
    METADATA,
    Column("id", Integer, primary_key=True),
    *_texts("job", "task_key", "candidate", "kernel_class", "family", "origin", "outcome", "message"),
    *_texts("seconds", "features"),
    *_floats("build_s", "profile_s", "created"),
    Column("best_s", Float(53)),
    Column("provenance", Integer, nullable=False),
    Column("configuration", LargeBinary, nullable=False),
)
SPANS = Table(
    "spans",
    METADATA,
    Column("id", Integer, primary_key=True),
    *_texts("run", "job", "task", "kind", "resource"),
    *_floats("start_s", "end_s"),
    Column("ready_s", Float(53)),
    Column("slots", Integer, nullable=False),
)
EVENTS = Table(
    "events",
    METADATA,
    Column("id", Integer, primary_key=True),
    *_texts("run", "kind", "body"),
    *_floats("at_s"),
)
LEASES = Table(
    "leases",
    METADATA,
    Column("run", Text, primary_key=True),
    *_texts("holder", "host", "boot", "pid_namespace", "pid_started"),
    Column("epoch", BigInteger, nullable=False),
    Column("pid", Integer, nullable=False),
    *_floats("expires"),
)
WISHES = Table(
    "wishes",
    METADATA,
    Column("number", Integer, primary_key=True),
    *_texts("run", "kind", "body"),
    Column("job", Text),
    *_floats("created"),
    Column("applied", Float(53)),
)
VIEWS = Table(
    "views", METADATA, Column("run", Text, primary_key=True), *_texts("content"), *_floats("updated")
)
BLOBS = Table(
    "blobs",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
BLOB_USES = Table(
    "blob_uses",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("owner", Text, primary_key=True),
)
