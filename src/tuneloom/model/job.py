"""What a user submits."""

from dataclasses import asdict, dataclass, field
from typing import Any

from tuneloom.errors import InputError
from tuneloom.model.budget import Budget
from tuneloom.model.measuring import MeasuringRules
from tuneloom.model.numbers import COUNT, NOT_NEGATIVE, POSITIVE, SEED, WHOLE

DTYPES = ("float32", "bfloat16", "int8")
"""In which type a model may compute."""
REUSE = ("auto", "off", "transfer", "share", "transfer-only")
"""What a job may do with schedules of other tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One submission: a model, a target, a device key, a budget, options, a priority.

    `arrival_s` and `deadline_s` count from the submission of the job. `out` is the folder of
    the bundle; without one, none is written. `extra` is what its tuner alone understands.
    `files` are digests of what the job reads, by name beside its model. `more_shapes` are further sets of
    shapes for the same bundle; with `pad` it takes smaller inputs too. With another `dtype` than float32
    outputs may be off by `tolerance`, for int8 measured on the `samples`, the path of a NumPy archive.
    """

    name: str
    model: str
    budget: Budget
    tuner: str = "tvm"
    target: str = "cpu"
    device_key: str = "cpu"
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    more_shapes: tuple[dict[str, tuple[int, ...]], ...] = ()
    pad: bool = False
    measuring: MeasuringRules = field(default_factory=MeasuringRules)
    batch: int = 16
    seed: int = 0
    priority: int = 0
    deadline_s: float | None = None
    arrival_s: float = 0.0
    waits_for_devices: bool = False
    layout: str = "blocked"
    only_tvm: bool = False
    dtype: str = "float32"
    samples: str | None = None
    tolerance: float = 0.1
    reuse: str = "auto"
    out: str | None = None
    extra: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.reuse not in REUSE:
            raise InputError(f"unknown reuse mode {self.reuse!r}; known: {', '.join(REUSE)}")
        COUNT.require("batch", self.batch)
        SEED.require("seed", self.seed)
        WHOLE.require("priority", self.priority)
        NOT_NEGATIVE.require("arrival_s", self.arrival_s)
        POSITIVE.require("tolerance", self.tolerance)
        if self.dtype not in DTYPES:
            raise InputError(f"unknown dtype {self.dtype!r}; known: {', '.join(DTYPES)}", field="dtype")
        if (self.dtype == "int8") != (self.samples is not None):
            words = "needs --samples FILE.npz" if self.samples is None else "takes no --samples"
            raise InputError(f"dtype {self.dtype} {words}", field="samples")
        if self.deadline_s is not None:
            POSITIVE.require("deadline_s", self.deadline_s)
        for shapes in (self.shapes, *self.more_shapes):
            for name, shape in shapes.items():
                for size in shape:
                    COUNT.require(f"every size in the shape of {name!r}", size)

    def to_json(self) -> dict[str, Any]:
        """Plain data that `from_json` takes back."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "JobSpec":
        shapes, *more = (
            {name: tuple(shape) for name, shape in one.items()}
            for one in (data["shapes"], *data.get("more_shapes", ()))
        )
        rest = {name: value for name, value in data.items() if name != "policy"}
        rules = MeasuringRules(**data.get("measuring", data.get("policy", {})))  # "policy" in older stores
        return cls(
            **{
                **rest,
                "shapes": shapes,
                "more_shapes": tuple(more),
                "budget": Budget(**data["budget"]),
                "measuring": rules,
            }
        )
