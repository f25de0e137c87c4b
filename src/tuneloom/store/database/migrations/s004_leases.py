"""Step 4: who carries a run out, what others want of it, what it looks like, and files by digest."""

STATEMENTS = (
    "ALTER TABLE jobs ADD COLUMN created DOUBLE PRECISION",
    """CREATE TABLE leases (
        run TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        epoch BIGINT NOT NULL,
        holder TEXT NOT NULL,
        host TEXT NOT NULL,
        boot TEXT NOT NULL,
        pid BIGINT NOT NULL,
        pid_started TEXT NOT NULL,
        expires DOUBLE PRECISION NOT NULL
    )""",
    """CREATE TABLE wishes (
        number {counter},
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        job TEXT,
        kind TEXT NOT NULL,
        body TEXT NOT NULL DEFAULT '{{}}',
        created DOUBLE PRECISION NOT NULL,
        applied DOUBLE PRECISION
    )""",
    "CREATE INDEX open_wishes ON wishes (run, number) WHERE applied IS NULL",
    "CREATE INDEX open_runs ON runs (number) WHERE status IN ('waiting', 'running')",
    """CREATE TABLE views (
        run TEXT PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
        updated DOUBLE PRECISION NOT NULL,
        content TEXT NOT NULL
    )""",
    """CREATE TABLE blobs (
        digest TEXT NOT NULL,
        number BIGINT NOT NULL,
        content {bytes} NOT NULL,
        PRIMARY KEY (digest, number)
    )""",
)
