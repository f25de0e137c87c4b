"""How much a job may spend, and when it may stop early."""

from dataclasses import dataclass

from tuneloom.errors import BudgetError


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Trials for the whole job, optionally bounded by time or ended by a goal."""

    trials: int
    seconds: float | None = None
    goal_ms: float | None = None

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise BudgetError(f"a budget needs at least 1 trial, got {self.trials}")
        if self.seconds is not None and self.seconds <= 0:
            raise BudgetError(f"a time budget must be positive, got {self.seconds} s")
        if self.goal_ms is not None and self.goal_ms <= 0:
            raise BudgetError(f"a goal must be positive, got {self.goal_ms} ms")
