"""The steps that make a store what this version of the program needs, oldest first.

A step that has been released is never changed; a new need is a new step.
"""

STEPS: tuple[tuple[str, ...], ...] = (
    # Step 1: runs, jobs, tasks, workloads and trials.
    (
        """CREATE TABLE runs (
            number {counter},
            id TEXT NOT NULL UNIQUE,
            created DOUBLE PRECISION NOT NULL,
            ended DOUBLE PRECISION,
            command TEXT NOT NULL,
            options TEXT NOT NULL,
            status TEXT NOT NULL,
            message TEXT NOT NULL DEFAULT '',
            host TEXT NOT NULL,
            boot TEXT NOT NULL,
            pid BIGINT NOT NULL,
            pid_started TEXT NOT NULL
        )""",
        """CREATE TABLE notes (
            number {counter},
            run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            name TEXT NOT NULL,
            content TEXT NOT NULL,
            UNIQUE (run, name)
        )""",
        """CREATE TABLE jobs (
            id TEXT PRIMARY KEY,
            run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
            number BIGINT NOT NULL,
            name TEXT NOT NULL,
            spec TEXT NOT NULL,
            status TEXT NOT NULL,
            started DOUBLE PRECISION,
            ended DOUBLE PRECISION,
            result TEXT NOT NULL DEFAULT '{{}}',
            UNIQUE (run, number),
            UNIQUE (run, name)
        )""",
        """CREATE TABLE workloads (
            number {counter},
            task_key TEXT NOT NULL,
            tvm_version TEXT NOT NULL,
            name TEXT NOT NULL,
            kernel_class TEXT NOT NULL,
            shapes TEXT NOT NULL,
            gflop DOUBLE PRECISION NOT NULL,
            family TEXT NOT NULL,
            target TEXT NOT NULL,
            payload {bytes} NOT NULL,
            UNIQUE (task_key, tvm_version)
        )""",
        """CREATE TABLE tasks (
            number {counter},
            job TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
            task_key TEXT NOT NULL,
            tvm_version TEXT NOT NULL,
            name TEXT NOT NULL,
            weight BIGINT NOT NULL,
            gflop DOUBLE PRECISION NOT NULL,
            shapes TEXT NOT NULL,
            kernel_class TEXT NOT NULL,
            plan TEXT NOT NULL DEFAULT '{{}}',
            UNIQUE (job, task_key),
            FOREIGN KEY (task_key, tvm_version) REFERENCES workloads (task_key, tvm_version)
        )""",
        """CREATE TABLE provenances (
            id {counter},
            family TEXT NOT NULL,
            target TEXT NOT NULL,
            device_key TEXT NOT NULL,
            policy TEXT NOT NULL,
            tvm_version TEXT NOT NULL,
            UNIQUE (family, target, device_key, policy, tvm_version)
        )""",
        """CREATE TABLE trials (
            id {counter},
            job TEXT NOT NULL,
            task_key TEXT NOT NULL,
            candidate TEXT NOT NULL,
            kernel_class TEXT NOT NULL,
            family TEXT NOT NULL,
            provenance BIGINT NOT NULL REFERENCES provenances (id),
            configuration {bytes} NOT NULL,
            origin TEXT NOT NULL,
            outcome TEXT NOT NULL,
            message TEXT NOT NULL,
            seconds TEXT NOT NULL,
            best_s DOUBLE PRECISION,
            build_s DOUBLE PRECISION NOT NULL,
            profile_s DOUBLE PRECISION NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            UNIQUE (job, task_key, candidate),
            FOREIGN KEY (job, task_key) REFERENCES tasks (job, task_key) ON DELETE CASCADE
        )""",
    ),
    # Step 2: what held which resource when, and the core's log.
    (
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
    ),
    # Step 3: the bank is asked by class, by workload and by target family; features are kept.
    # The partial indexes hold measured records only, in the order of their times, so the
    # fastest few are read off their beginning however many there are.
    (
        "ALTER TABLE trials ADD COLUMN features TEXT NOT NULL DEFAULT '{{}}'",
        "CREATE INDEX trials_of_class ON trials (kernel_class, family, best_s) WHERE best_s IS NOT NULL",
        "CREATE INDEX trials_of_workload ON trials (task_key, family, best_s) WHERE best_s IS NOT NULL",
        "CREATE INDEX workloads_of_class ON workloads (kernel_class, family)",
    ),
    # Step 4: who carries a run out, what others want of it, what it looks like, and files by digest.
    (
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
    ),
    # Step 5: tenants, their tokens and models, who submitted which run, bundles, and what was done by whom.
    (
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
    ),
    # Step 6: who needs which files, so that nobody's are removed and nobody's stay for ever.
    (
        """CREATE TABLE blob_uses (
            digest TEXT NOT NULL,
            owner TEXT NOT NULL,
            PRIMARY KEY (digest, owner)
        )""",
        "CREATE INDEX uses_of_owner ON blob_uses (owner)",
    ),
    # Step 7: people who logged in to the page of a service.
    (
        """CREATE TABLE sessions (
            digest TEXT PRIMARY KEY,
            token TEXT NOT NULL REFERENCES tokens (id) ON DELETE CASCADE,
            created DOUBLE PRECISION NOT NULL,
            expires DOUBLE PRECISION NOT NULL
        )""",
        "CREATE INDEX sessions_of_token ON sessions (token, created)",
    ),
    # Step 8: what tenants used of devices, and which of a tenant's jobs goes first.
    (
        """CREATE TABLE shares (
            tenant TEXT NOT NULL,
            device_key TEXT NOT NULL,
            used_s DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (tenant, device_key)
        )""",
        "ALTER TABLE submissions ADD COLUMN priority BIGINT NOT NULL DEFAULT 0",
        "CREATE INDEX runs_by_status ON runs (status, number)",
    ),
    # Step 9: in which process namespace the number of an owner means something.
    (
        "ALTER TABLE runs ADD COLUMN pid_namespace TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE leases ADD COLUMN pid_namespace TEXT NOT NULL DEFAULT ''",
    ),
)
