"""Step 2: what held which resource when, and the core's log."""

STATEMENTS = (
    """CREATE TABLE spans (
        id {counter},
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        job TEXT NOT NULL,
        task TEXT NOT NULL,
        kind TEXT NOT NULL,
        resource TEXT NOT NULL,
        start_s DOUBLE PRECISION NOT NULL,
        end_s DOUBLE PRECISION NOT NULL,
        ready_s DOUBLE PRECISION,
        slots BIGINT NOT NULL
    )""",
    "CREATE INDEX spans_of_run ON spans (run, start_s)",
    """CREATE TABLE events (
        id {counter},
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        at_s DOUBLE PRECISION NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL
    )""",
    "CREATE INDEX events_of_run ON events (run, id)",
)
