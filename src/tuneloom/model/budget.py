"""How much a job may spend, and when it may stop early."""

from dataclasses import dataclass

from tuneloom.model.numbers import COUNT, POSITIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Trials for the whole job, optionally bounded by time or ended by a goal.

    A goal is a latency, or a part of what ONNX Runtime takes for the same model; of two goals
    both have to be met.
    """

    trials: int
    seconds: float | None = None
    goal_ms: float | None = None
    goal_ratio: float | None = None

    def __post_init__(self) -> None:
        COUNT.require("trials", self.trials)
        for name in ("seconds", "goal_ms", "goal_ratio"):
            value = getattr(self, name)
            if value is not None:
                POSITIVE.require(name, value)
