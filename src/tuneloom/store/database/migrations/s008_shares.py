"""Step 8: what tenants used of devices, and which of a tenant's jobs goes first."""

STATEMENTS = (
    """CREATE TABLE shares (
        tenant TEXT NOT NULL,
        device_key TEXT NOT NULL,
        used_s DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (tenant, device_key)
    )""",
    "ALTER TABLE submissions ADD COLUMN priority BIGINT NOT NULL DEFAULT 0",
    "CREATE INDEX runs_by_status ON runs (status, number)",
)
