"""Step 3: the bank is asked by class, by workload and by target family; features are kept.

The partial indexes hold measured records only, in the order of their times, so the
fastest few are read off their beginning however many there are.
"""

STATEMENTS = (
    "ALTER TABLE trials ADD COLUMN features TEXT NOT NULL DEFAULT '{{}}'",
    "CREATE INDEX trials_of_class ON trials (kernel_class, family, best_s) WHERE best_s IS NOT NULL",
    "CREATE INDEX trials_of_workload ON trials (task_key, family, best_s) WHERE best_s IS NOT NULL",
    "CREATE INDEX workloads_of_class ON workloads (kernel_class, family)",
)
