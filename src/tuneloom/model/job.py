"""What a user submits."""

from dataclasses import asdict, dataclass, field
from typing import Any

from tuneloom.errors import InputError
from tuneloom.model.budget import Budget, MeasuringRules
from tuneloom.model.fields import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    SHAPES,
    TEXT,
    WHOLE,
    YES_OR_NO,
    PathKind,
    fields_of,
    job_field,
    one_of,
)
from tuneloom.model.sizes import Ranges, range_of

NOWHERE = "none"
"""The key of no device: a job with it measures nothing."""
DTYPES = ("float32", "float16", "bfloat16", "tf32", "tf32_convolutions", "fp8", "int8")
"""In which type a model may compute."""
TF32_TYPES = frozenset(("tf32", "tf32_convolutions"))
"""Those that round some numbers to TF32 and change the type of none."""
CALIBRATED = frozenset(("fp8", "int8"))
"""Those whose scales are found on samples."""
ZOO = "zoo:"
"""How names of networks that come with the program begin. Their weights are drawn, and so may samples be."""
LAYOUTS = ("blocked", "plain", "channels_last", "channels_first")
"""How the tensors of a model may lie in memory."""
GOALS = ("latency", "energy")
REUSE = ("auto", "off", "transfer", "share", "transfer-only")
"""What a job may do with schedules of other tasks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One submission: a model, a target, a device key, a budget, options, a priority.

    Attributes made by `job_field` are what users may say of a job, wherever they say it; to declare one
    more is all it takes. `arrival_s` and `deadline_s` count from the submission of the job. `more_shapes` are
    further sets of shapes for the same bundle. If a dimension varies, `ranges` has its inputs, `shapes` and
    `more_shapes` its greatest and least size, and `asked` how often sizes were asked for so far. `extra`
    has the fields of the job's kind, `files` the digests of what it reads, by name beside its model.
    """

    model: str = job_field(
        TEXT,
        "a model file, or `zoo:NAME`",
        more="a `.toml` file describes a [kernel](kernels.md)",
        shared=False,
    )
    name: str = job_field(TEXT, "name of the job", otherwise="the model's name", shared=False)
    out: str | None = job_field(
        PathKind(),
        "folder for the bundle; must be new or empty",
        default=None,
        otherwise="no bundle",
        option="--out",
        metavar="DIR",
        remote=False,
        shared=False,
    )
    tuner: str = job_field(
        TEXT, "tuner to use", default="tvm", otherwise="chosen by model", option="--tuner", metavar="NAME"
    )
    target: str = job_field(TEXT, "`cpu`, `cuda`, or a TVM target in JSON", default="cpu", option="--target")
    device_key: str = job_field(
        TEXT,
        "key of the device to measure on",
        more="`none` builds from records and first guesses and measures nothing",
        name="device",
        default="cpu",
        otherwise="chosen by target",
        option="--device",
        metavar="KEY",
        for_each=True,
    )
    budget: Budget
    batch: int = job_field(COUNT, "number of candidates per batch", default=16, option="--batch", metavar="N")
    measuring: MeasuringRules = field(default_factory=MeasuringRules)
    shapes: dict[str, tuple[int, ...]] = job_field(  # noqa: RUF009 - its default is a factory
        SHAPES,
        "shapes of inputs, by name; several shapes, or a range such as 1..64, make one bundle for all",
        default=dict,
        otherwise="the model's",
        option="--shape",
        metavar="NAME=1,3,224,224",
    )
    more_shapes: tuple[dict[str, tuple[int, ...]], ...] = ()
    ranges: Ranges = field(default_factory=dict)
    asked: tuple[tuple[int, int], ...] = ()
    pad: bool = job_field(
        YES_OR_NO,
        "let the bundle pad smaller inputs with zeros to the next larger of its shapes",
        default=False,
        option="--pad",
    )
    only_tvm: bool = job_field(
        YES_OR_NO,
        "leave nothing to other runtimes",
        more="a model with parts that TVM can't compile is then rejected",
        default=False,
        otherwise="they run what TVM can't compile or runs slower",
        option="--only-tvm",
    )
    state: str | None = job_field(
        TEXT,
        "outputs that become inputs of the next run, as INPUT=OUTPUT, separated by commas",
        more="the bundle then keeps them; see [bundles](bundles.md)",
        default=None,
        option="--state",
        metavar="PAST=PRESENT",
    )
    self_contained: bool = job_field(
        YES_OR_NO,
        "exclude code that needs other libraries at run time",
        more="for example cuBLASLt and cuDNN; includes `only_tvm`; see [bundles](bundles.md)",
        default=False,
        option="--self-contained",
    )
    goal: str = job_field(
        one_of(GOALS),
        "what to optimise: the latency of a model, or the energy of a run",
        more="energy is measured for the fastest few schedules of each kernel, on NVIDIA GPUs",
        default="latency",
        option="--goal",
    )
    dtype: str = job_field(
        one_of(DTYPES),
        "number type for convolutions and products",
        more="GPUs have float16, bfloat16, tf32 and fp8, CPUs bfloat16 and int8; `tf32_convolutions` leaves "
        "products in float32, as PyTorch does by default; fp8 and int8 are calibrated on `samples`; see "
        "[models](models.md)",
        default="float32",
        option="--dtype",
    )
    samples: str | None = job_field(
        PathKind(ending=".npz"),
        "inputs to calibrate fp8 or int8 on: a NumPy archive with one array per input, under its name",
        more="networks of the zoo do without: their weights are random, so random inputs tell as much",
        default=None,
        option="--samples",
        metavar="FILE.npz",
    )
    tolerance: float = job_field(
        POSITIVE,
        "largest relative change of the outputs that a lower precision may cause",
        default=0.1,
        option="--tolerance",
        metavar="R",
    )
    layout: str = job_field(
        one_of(LAYOUTS),
        "tensor layout of the whole model",
        more="`blocked` is what the target likes best: on GPUs the faster of `channels_last` and "
        "`channels_first`, timed before tuning; `plain` leaves the model as it came",
        default="blocked",
        option="--layout",
    )
    seed: int = job_field(SEED, "random seed", default=0, option="--seed", metavar="N")
    reuse: str = job_field(
        one_of(REUSE),
        "how to reuse schedules of other kernels; see `tuneloom plan`",
        more="more in [reuse](reuse.md)",
        default="auto",
        option="--reuse",
    )
    priority: int = job_field(
        WHOLE, "jobs with a higher priority go first", default=0, option="--priority", metavar="N"
    )
    deadline_s: float | None = job_field(
        POSITIVE,
        "the job should finish within this many seconds of being submitted",
        default=None,
        option="--deadline",
        metavar="S",
    )
    arrival_s: float = job_field(
        NOT_NEGATIVE, "start the job this many seconds after it is submitted", default=0.0, remote=False
    )
    waits_for_devices: bool = job_field(
        YES_OR_NO,
        "wait for a device with this key to appear instead of failing",
        default=False,
        option="--wait-for-devices",
    )
    extra: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        owner: type = type(self)
        for each in fields_of(owner):
            if not each.part:
                each.require(getattr(self, each.attribute))
        self._require_samples()
        for shapes in (self.shapes, *self.more_shapes):
            for name, shape in shapes.items():
                for size in shape:
                    COUNT.require(f"every size in the shape of {name!r}", size)
        if self.ranges:
            range_of(self.ranges)

    def _require_samples(self) -> None:
        calibrated = self.dtype in CALIBRATED
        if self.samples is not None and not calibrated:
            raise InputError(f"dtype {self.dtype} takes no --samples", field="samples")
        if self.samples is None and calibrated and not self.model.startswith(ZOO):
            raise InputError(f"dtype {self.dtype} needs --samples FILE.npz", field="samples")

    @property
    def measures(self) -> bool:
        """Whether something is run at all, or the model is only built."""
        return self.device_key != NOWHERE

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
                "ranges": {
                    name: tuple((low, high) for low, high in pairs)
                    for name, pairs in data.get("ranges", {}).items()
                },
                "asked": tuple((size, count) for size, count in data.get("asked", ())),
                "budget": Budget(**data["budget"]),
                "measuring": rules,
            }
        )


JOB_FIELDS = fields_of(JobSpec)
"""What may be said of a job of any kind."""
