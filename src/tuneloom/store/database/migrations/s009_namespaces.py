"""Step 9: in which process namespace the number of an owner means something."""

STATEMENTS = (
    "ALTER TABLE runs ADD COLUMN pid_namespace TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE leases ADD COLUMN pid_namespace TEXT NOT NULL DEFAULT ''",
)
