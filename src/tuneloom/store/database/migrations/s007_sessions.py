"""Step 7: people who logged in to the page of a service."""

STATEMENTS = (
    """CREATE TABLE sessions (
        digest TEXT PRIMARY KEY,
        token TEXT NOT NULL REFERENCES tokens (id) ON DELETE CASCADE,
        created DOUBLE PRECISION NOT NULL,
        expires DOUBLE PRECISION NOT NULL
    )""",
    "CREATE INDEX sessions_of_token ON sessions (token, created)",
)
