"""How much a job may spend, and when it may stop early."""

from dataclasses import dataclass

from tuneloom.model.numbers import COUNT, POSITIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Trials for the whole job, optionally bounded by time or ended by a goal."""

    trials: int
    seconds: float | None = None
    goal_ms: float | None = None

    def __post_init__(self) -> None:
        COUNT.require("trials", self.trials)
        if self.seconds is not None:
            POSITIVE.require("seconds", self.seconds)
        if self.goal_ms is not None:
            POSITIVE.require("goal_ms", self.goal_ms)
