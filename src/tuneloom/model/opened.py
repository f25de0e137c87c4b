"""What is known of a model once a worker has opened it, whatever kind of job it belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from tuneloom.model.job import JobSpec
from tuneloom.model.sizes import Ranges, VaryingSizes
from tuneloom.model.trial import Task

EXACT = 1e-3
"""How far outputs may be apart by rounding alone."""

_TITLES = {"onnxruntime": "ONNX Runtime", "tflite": "LiteRT", "openvino": "OpenVINO", "torch": "PyTorch"}


def title_of(runtime: str) -> str:
    """What people call a runtime."""
    return _TITLES.get(runtime, runtime)


Shapes = Mapping[str, tuple[int, ...]]
"""Shapes of inputs by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorInfo:
    """One input or output of a model."""

    name: str
    shape: tuple[int, ...]
    dtype: str


_LEFT = ":left"
_OF_JOB = ("shapes", "more_shapes", "ranges", "asked", "target", "layout", "only_tvm", "dtype", "tolerance")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecipe:
    """How a worker gets a model; enough to get it again in another worker."""

    key: str
    source: str
    shapes: Shapes
    target: str
    layout: str = "blocked"
    only_tvm: bool = False
    dtype: str = "float32"
    samples: str = ""
    tolerance: float = 0.1
    """How far outputs may be off where `dtype` is not float32, measured on these samples."""
    left: tuple[str, ...] = ()
    """Nodes that are left to ONNX Runtime, by their first outputs, because it runs them faster."""
    whole_in: str = ""
    """The runtime that all of the model is left to, because it runs it faster; TVM if it is empty."""
    cores: int = 1
    """How many cores one run of the model may use, where the target does not say it."""
    more_shapes: tuple[Shapes, ...] = ()
    """Further sets of shapes to compile it for."""
    ranges: Ranges = field(default_factory=dict)
    """Inputs of which a dimension varies: sizes to compile it for are chosen when it is opened."""
    asked: tuple[tuple[int, int], ...] = ()
    """Sizes that were asked for so far, with their counts."""
    trials: int = 0
    """What may be spent on all sizes."""
    varies: bool = False
    """Whether its sets of shapes are sizes that were chosen so."""
    state: str = ""
    """Outputs that become inputs of the next run, as INPUT=OUTPUT separated by commas."""
    lowered_folder: str = field(default="", compare=False)
    """The folder that keeps what models lowered to; none if it is empty."""

    @classmethod
    def of(cls, key: str, spec: JobSpec, *, cores: int = 1, lowered_folder: str = "") -> "ModelRecipe":
        """How the model of a job is opened."""
        own = {name: getattr(spec, name) for name in _OF_JOB}
        return cls(
            key=key,
            source=spec.model,
            state=spec.state or "",
            samples=spec.samples or "",
            cores=cores,
            lowered_folder=lowered_folder,
            trials=spec.budget.trials,
            **own,
        )

    def leaving(self, left: tuple[str, ...]) -> "ModelRecipe":
        """The model with these nodes left to ONNX Runtime; it has a key of its own."""
        return replace(self, left=left, key=f"{self.key}{_LEFT}")

    @property
    def whole(self) -> "ModelRecipe":
        """The model that leaves no nodes, where this one does."""
        return replace(self, left=(), key=self.key.removesuffix(_LEFT))

    def given_to(self, runtime: str) -> "ModelRecipe":
        """The model as another runtime runs it alone; what TVM made of it stays under the same key."""
        return replace(self, whole_in=runtime)

    def at(self, sizes: Sequence[int]) -> "ModelRecipe":
        """The model with these sizes of the dimension that varies, as sets of shapes."""
        shapes, *more = (
            {
                name: tuple(size if low < high else low for low, high in self.ranges[name])
                for name in self.ranges
            }
            for size in sizes
        )
        fixed = {name: shape for name, shape in self.shapes.items() if name not in self.ranges}
        return replace(
            self,
            shapes=fixed | shapes,
            more_shapes=tuple(fixed | one for one in more),
            ranges={},
            asked=(),
            varies=True,
        )

    def variants(self) -> "list[ModelRecipe]":
        """A recipe for each set of shapes; the first has this one's key."""
        own = replace(self, more_shapes=())
        further = enumerate(self.more_shapes, 1)
        return [own, *(replace(own, key=f"{self.key}#{n}", shapes=shapes) for n, shapes in further)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedModel:
    """Whose code is in a model that was written beside TVM's, and which libraries that code needs."""

    implementers: tuple[str, ...] = ()
    requires: tuple[Mapping[str, Any], ...] = ()
    """For each: libraries of which one is enough, the packages that bring them, whose code calls it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeVariant:
    """A model under another set of shapes: its interface, and the parts of it another runtime runs."""

    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    foreign: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutChoice:
    """The layout that a whole model ran fastest in before it was tuned, and what a run took in each."""

    layout: str
    seconds: Mapping[str, float]

    def __str__(self) -> str:
        times = (f"{name} {1e3 * seconds:.3g} ms" for name, seconds in self.seconds.items())
        return f"layout {self.layout}: a run took {', '.join(times)} before tuning"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """What the program needs to know of a model that lives in a worker.

    `family` names the records that may be reused for it, `facts` are for its kind of job alone. `notes` say
    what was assumed when it came in, `foreign` which parts another runtime runs, `state` which outputs
    become inputs of the next run.
    """

    name: str
    digest: str
    target: str
    family: str
    tasks: tuple[Task, ...] = field(repr=False)
    tvm_version: str = ""
    inputs: tuple[TensorInfo, ...] = ()
    outputs: tuple[TensorInfo, ...] = ()
    canary: bytes = field(default=b"", repr=False)
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    foreign: tuple[Mapping[str, Any], ...] = ()
    state: tuple[Mapping[str, Any], ...] = ()
    variants: tuple[ShapeVariant, ...] = ()
    sizes: VaryingSizes | None = None
    """The dimension that varies, if one does; there is a variant for each of its programs."""
    relatives: tuple[str, ...] = ()
    """Families whose records may start a search, the most alike first."""
    layouts: tuple[str, ...] = ()
    """Layouts that it may have as a whole, where times have to decide; the usual one comes first."""
    chosen: LayoutChoice | None = None
    """What was chosen among them in an earlier job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRuntime:
    """A model in the fastest other runtime that is installed, timed in turn with the tuned one (`tuned_s`).

    `others` are the same in slower runtimes.
    """

    name: str
    difference: float
    seconds: tuple[float, ...]
    tuned_s: tuple[float, ...]
    others: tuple["OwnRuntime", ...] = ()

    @property
    def every(self) -> tuple["OwnRuntime", ...]:
        """All runtimes, the fastest first."""
        return (self, *self.others)

    @classmethod
    def fastest(cls, found: Sequence["OwnRuntime"]) -> "OwnRuntime":
        """The fastest of some, with the others inside."""
        best, *others = sorted(found, key=lambda one: median(one.seconds))
        return replace(best, others=tuple(others))


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """A model of which nodes are `left` to ONNX Runtime because it is faster so; times in turn decided.

    Of a `whole` model all nodes are left to a `runtime`. `seconds` are those of the model divided so, `tvm_s`
    those of TVM alone, `rival_s` those of the fastest other runtime alone. `foreign` are the parts under each
    set of shapes, `shares` which part of the time each takes.
    """

    left: tuple[str, ...]
    seconds: tuple[float, ...]
    tvm_s: tuple[float, ...]
    rival_s: tuple[float, ...]
    whole: bool
    runtime: str = "onnxruntime"
    foreign: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    shares: Mapping[str, float] = field(default_factory=dict)
    difference: float = 0.0

    @classmethod
    def of(cls, runtime: str, left: tuple[str, ...] = ()) -> "Handover":
        """A proposal that was not timed: these nodes, or all of the model if none is named."""
        return cls(left=left, runtime=runtime, whole=not left, seconds=(), tvm_s=(), rival_s=())

    def applied(self, recipe: ModelRecipe) -> ModelRecipe:
        """How a worker gets the model that is divided so."""
        return recipe.given_to(self.runtime) if self.whole else recipe.leaving(self.left)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeChoice:
    """What became of proposals to leave a model to another runtime, or pieces of it to ONNX Runtime.

    `handover` is the one that was taken, None where TVM keeps everything; `rejected` are the others.
    `notes` tell what could not be proposed, or be taken although it is faster.
    """

    handover: Handover | None = None
    rejected: tuple[Handover, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """Outputs of the tuned model against the untuned one, and both timed in turn.

    `foreign_shares` is which share of the tuned model's time each part takes that another runtime runs.
    `own_runtime` is missing where that runtime is not installed, or fails: then `uncompared` is the reason.
    A model with several shapes runs once under each; `by_shape` are the medians of both, untuned first, under
    each. Where a dimension varies, those of the tuned programs are the best of runs in turns.
    """

    difference: float
    tuned_s: tuple[float, ...]
    untuned_s: tuple[float, ...]
    foreign_shares: Mapping[str, float] = field(default_factory=dict)
    own_runtime: OwnRuntime | None = None
    uncompared: str = ""
    by_shape: tuple[tuple[float, float], ...] = ()
    tolerance: float = EXACT
    energy_j: float | None = None
    """What one run of the tuned model takes, where its device counts that."""
    arbitrary: bool = False
    """Whether whole numbers were made up as inputs, which may be none that the model is meant for."""

    @property
    def same(self) -> bool:
        return self.difference <= self.tolerance
