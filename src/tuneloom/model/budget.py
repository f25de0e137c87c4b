"""How much a job may spend, and when it may stop early."""

from dataclasses import dataclass

from tuneloom.model.fields import fields_of, job_field
from tuneloom.model.numbers import COUNT, POSITIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Trials for the whole job, optionally bounded by time or ended by a goal.

    A goal is a latency, or a part of what ONNX Runtime takes for the same model; of two goals
    both have to be met.
    """

    trials: int = job_field(COUNT, "number of trials per model", default=1000, option="--trials", metavar="N")
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
