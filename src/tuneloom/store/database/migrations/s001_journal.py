"""Step 1: runs, jobs, tasks, workloads and trials."""

STATEMENTS = (
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
)
