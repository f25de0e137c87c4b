"""Step 5: tenants, their tokens and models, who submitted which run, bundles, and what was done by whom."""

STATEMENTS = (
    """CREATE TABLE tenants (
        id TEXT PRIMARY KEY,
        created DOUBLE PRECISION NOT NULL,
        weight DOUBLE PRECISION NOT NULL,
        jobs_at_once BIGINT NOT NULL,
        trials_a_day BIGINT NOT NULL,
        bytes_stored BIGINT NOT NULL,
        most_priority BIGINT NOT NULL,
        shares_records BIGINT NOT NULL
    )""",
    """CREATE TABLE tokens (
        id TEXT PRIMARY KEY,
        tenant TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
        name TEXT NOT NULL,
        role TEXT NOT NULL,
        digest TEXT NOT NULL,
        created DOUBLE PRECISION NOT NULL,
        expires DOUBLE PRECISION,
        revoked DOUBLE PRECISION
    )""",
    "CREATE INDEX tokens_of_tenant ON tokens (tenant)",
    """CREATE TABLE models (
        number {counter},
        tenant TEXT NOT NULL REFERENCES tenants (id) ON DELETE CASCADE,
        digest TEXT NOT NULL,
        name TEXT NOT NULL,
        size_bytes BIGINT NOT NULL,
        created DOUBLE PRECISION NOT NULL,
        state TEXT NOT NULL,
        summary TEXT NOT NULL DEFAULT '{{}}',
        UNIQUE (tenant, digest)
    )""",
    """CREATE TABLE submissions (
        number {counter},
        run TEXT NOT NULL UNIQUE REFERENCES runs (id) ON DELETE CASCADE,
        tenant TEXT NOT NULL REFERENCES tenants (id),
        token TEXT NOT NULL,
        model TEXT NOT NULL,
        trials BIGINT NOT NULL,
        created DOUBLE PRECISION NOT NULL,
        idempotency_key TEXT,
        request TEXT NOT NULL,
        UNIQUE (tenant, idempotency_key)
    )""",
    "CREATE INDEX submissions_of_tenant ON submissions (tenant, number)",
    "CREATE INDEX submissions_by_time ON submissions (tenant, created)",
    "CREATE INDEX jobs_by_status ON jobs (status)",
    """CREATE TABLE bundles (
        run TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        digest TEXT NOT NULL,
        size_bytes BIGINT NOT NULL,
        created DOUBLE PRECISION NOT NULL
    )""",
    """CREATE TABLE audit (
        number {counter},
        at DOUBLE PRECISION NOT NULL,
        tenant TEXT NOT NULL,
        token TEXT NOT NULL,
        action TEXT NOT NULL,
        subject TEXT NOT NULL,
        request_id TEXT NOT NULL,
        detail TEXT NOT NULL DEFAULT '{{}}'
    )""",
    "CREATE INDEX audit_of_tenant ON audit (tenant, number)",
)
