"""Step 6: who needs which files, so that nobody's are removed and nobody's stay for ever."""

STATEMENTS = (
    """CREATE TABLE blob_uses (
        digest TEXT NOT NULL,
        owner TEXT NOT NULL,
        PRIMARY KEY (digest, owner)
    )""",
    "CREATE INDEX uses_of_owner ON blob_uses (owner)",
)
