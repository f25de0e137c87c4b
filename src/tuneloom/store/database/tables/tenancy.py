"""The tables of a service: tenants, tokens, models, submissions, bundles, shares and the audit log."""

from sqlalchemy import BigInteger, Column, Float, Integer, Table, Text

from tuneloom.store.database.tables.runs import METADATA


def _texts(*names: str) -> list[Column[str]]:
    return [Column(name, Text, nullable=False) for name in names]


def _numbers(*names: str) -> list[Column[int]]:
    return [Column(name, BigInteger, nullable=False) for name in names]


def _created() -> Column[float]:
    return Column("created", Float(53), nullable=False)


TENANTS = Table(
    "tenants",
    METADATA,
    Column("id", Text, primary_key=True),
    _created(),
    Column("weight", Float(53), nullable=False),
    *_numbers("jobs_at_once", "trials_a_day", "bytes_stored", "most_priority", "shares_records"),
)
TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", Text, primary_key=True),
    *_texts("tenant", "name", "role", "digest"),
    _created(),
    Column("expires", Float(53)),
    Column("revoked", Float(53)),
)
MODELS = Table(
    "models",
    METADATA,
    Column("number", Integer, primary_key=True),
    *_texts("tenant", "digest", "name", "state", "summary"),
    *_numbers("size_bytes"),
    _created(),
)
SUBMISSIONS = Table(
    "submissions",
    METADATA,
    Column("number", Integer, primary_key=True),
    *_texts("run", "tenant", "token", "model", "request"),
    *_numbers("trials", "priority"),
    _created(),
    Column("idempotency_key", Text),
)
SHARES = Table(
    "shares",
    METADATA,
    Column("tenant", Text, primary_key=True),
    Column("device_key", Text, primary_key=True),
    Column("used_s", Float(53), nullable=False),
)
BUNDLES = Table(
    "bundles",
    METADATA,
    Column("run", Text, primary_key=True),
    *_texts("digest"),
    *_numbers("size_bytes"),
    _created(),
)
AUDIT = Table(
    "audit",
    METADATA,
    Column("number", Integer, primary_key=True),
    Column("at", Float(53), nullable=False),
    *_texts("tenant", "token", "action", "subject", "request_id", "detail"),
)
SESSIONS = Table(
    "sessions",
    METADATA,
    Column("digest", Text, primary_key=True),
    *_texts("token"),
    _created(),
    Column("expires", Float(53), nullable=False),
)
