"""How much a job may spend, when it may stop early, and how its candidates are timed."""

from dataclasses import dataclass

from tuneloom.model.fields import BYTES, COUNT, NATURAL, NOT_NEGATIVE, POSITIVE, RATIO, fields_of, job_field


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Trials for the whole job, optionally bounded by time or ended by a goal.

    A goal is a latency, or a part of what ONNX Runtime takes for the same model; of two goals
    both have to be met.
    """

    trials: int = job_field(
        NATURAL,
        "number of trials per model",
        more="0: only what is known of its kernels, and first guesses; models only",
        default=1000,
        option="--trials",
        metavar="N",
    )
    seconds: float | None = job_field(
        POSITIVE, "stop tuning a model after this many seconds", default=None, option="--seconds", metavar="S"
    )
    goal_ms: float | None = job_field(
        POSITIVE,
        "stop when the model's latency is at most this many milliseconds",
        default=None,
        option="--goal-ms",
        metavar="MS",
    )
    goal_ratio: float | None = job_field(
        POSITIVE,
        "stop when the model takes at most this many times as long as in ONNX Runtime",
        more="ONNX Runtime is timed first, on as many threads; ONNX models on the CPU only",
        default=None,
        option="--goal-ratio",
        metavar="R",
    )

    def __post_init__(self) -> None:
        for each in fields_of(Budget):
            each.require(getattr(self, each.attribute))


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
