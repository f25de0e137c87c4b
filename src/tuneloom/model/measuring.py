"""How candidates are timed; part of every record, so that times are comparable."""

from dataclasses import dataclass

from tuneloom.model.fields import job_field
from tuneloom.model.numbers import BYTES, COUNT, NOT_NEGATIVE, POSITIVE, RATIO


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuringRules:
    """One run decides whether a candidate is worth repeating.

    A candidate whose first run is slower than `hopeless_ratio` times the best known
    keeps that single timing; others are repeated `repeats` times for at least
    `min_repeat_ms` each.
    """

    repeats: int = 3
    min_repeat_ms: float = 20.0
    hopeless_ratio: float = 3.0
    run_timeout_s: float = job_field(
        POSITIVE, "time limit for one run, in seconds", default=10.0, option="--run-timeout", metavar="S"
    )
    build_timeout_s: float = job_field(
        POSITIVE,
        "time limit for one build, in seconds",
        more="a build far slower than others of its kind is stopped earlier",
        default=30.0,
        option="--build-timeout",
        metavar="S",
    )
    memory_bytes: int = 4 << 30

    def __post_init__(self) -> None:
        COUNT.require("repeats", self.repeats)
        NOT_NEGATIVE.require("min_repeat_ms", self.min_repeat_ms)
        RATIO.require("hopeless_ratio", self.hopeless_ratio)
        POSITIVE.require("run_timeout_s", self.run_timeout_s)
        POSITIVE.require("build_timeout_s", self.build_timeout_s)
        BYTES.require("memory_bytes", self.memory_bytes)

    @property
    def tag(self) -> str:
        """A short name for records: timings under different tags are not mixed."""
        return f"r{self.repeats}-m{self.min_repeat_ms:g}-h{self.hopeless_ratio:g}"
