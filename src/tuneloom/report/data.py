"""What a report shows, as plain values.

Times of stages are seconds since the run began, times of kernels and models are seconds
per execution, points in time are seconds since the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tuneloom.report.choices import SearchStory


def _positive(what: str, seconds: float | None) -> None:
    if seconds is not None and not seconds > 0:
        raise ValueError(f"{what} must be positive, got {seconds} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceSpan:
    """A stage, or one candidate's part of it, on one resource; it was ready to start at `ready_s`."""

    job: str
    task: str
    kind: str
    resource: str
    start_s: float
    end_s: float
    ready_s: float | None = None
    slots: int = 1

    def __post_init__(self) -> None:
        if self.end_s < self.start_s or self.slots < 1:
            raise ValueError(f"no such span: {self}")

    @property
    def seconds(self) -> float:
        """How long the resource was held."""
        return self.end_s - self.start_s

    @property
    def waited_s(self) -> float:
        """How long the stage waited for the resource, 0 if nobody noted it."""
        return 0.0 if self.ready_s is None else max(0.0, self.start_s - self.ready_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceInfo:
    """A host with its slots, or a device with its key.

    `away` are the times at which it could not be used, until None if it never came back.
    """

    name: str
    slots: int = 1
    device_key: str | None = None
    machine: str = ""
    joined_s: float = 0.0
    away: tuple[tuple[float, float | None], ...] = ()
    why_away: str = ""

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise ValueError(f"resource {self.name!r} needs at least 1 slot, got {self.slots}")

    def missing(self, end_s: float) -> list[tuple[float, float]]:
        """When it could not be used, up to the end of the run."""
        before = [(0.0, self.joined_s)] if self.joined_s > 0 else []
        times = before + [(left_s, end_s if back_s is None else back_s) for left_s, back_s in self.away]
        return [(start_s, min(stop_s, end_s)) for start_s, stop_s in times if start_s < min(stop_s, end_s)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResult:
    """One job: its model before and after; `best` are the best knobs, if it tuned a kernel.

    `own_runtime` is what the user would run the model in otherwise, if it was there to compare with.
    """

    job: str
    name: str
    status: str = "finished"
    before_s: float | None = None
    after_s: float | None = None
    device: str = ""
    target: str = ""
    trials: int = 0
    failed: int = 0
    seconds: float | None = None
    best: str = ""
    own_runtime: str = ""
    own_runtime_s: float | None = None
    beside_s: float | None = None
    """What the model took in turn with its own runtime, which is what to compare that with."""
    left: str = ""
    """How much of it is left to that runtime because it is faster there: "whole", "parts" or nothing."""
    progress: tuple["CurvePoint", ...] = ()
    energy_j: float | None = None
    """What one run of the tuned model costs, if its device tells."""
    layout: str = ""
    """The memory layout of the whole model, if times decided on it."""

    def __post_init__(self) -> None:
        _positive(f"the energy of {self.name!r}", self.energy_j)
        _positive(f"the latency of {self.name!r}", self.before_s)
        _positive(f"the latency of {self.name!r} in {self.own_runtime}", self.own_runtime_s)
        _positive(f"the latency of {self.name!r}", self.after_s)
        _positive(f"the latency of {self.name!r} beside {self.own_runtime}", self.beside_s)

    @property
    def speed_up(self) -> float | None:
        """How many times faster the model became, if both latencies are known."""
        return self.before_s / self.after_s if self.before_s and self.after_s else None

    @property
    def against_own_runtime(self) -> float | None:
        """How many times faster the model is than in its own runtime, if that was timed."""
        own_s = self.beside_s or self.after_s
        return self.own_runtime_s / own_s if self.own_runtime_s and own_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """The best time known once this many trials were done."""

    trial: int
    best_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """One kernel: what was tried and what came of it.

    `curve` has a point for every improvement; `failed_at` are the numbers of the trials
    that failed; `origin` says who proposed the best configuration, `implementer` who made code
    of it if that was not TVM; `counters` are what its device counted in one run of it.
    """

    job: str
    key: str
    name: str
    weight: int = 1
    gflop: float = 0.0
    shapes: str = ""
    kernel_class: str = ""
    trials: int = 0
    before_s: float | None = None
    after_s: float | None = None
    origin: str = ""
    implementer: str = ""
    curve: tuple[CurvePoint, ...] = ()
    failed_at: tuple[int, ...] = ()
    counters: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _positive(f"the time of {self.name!r}", self.before_s)
        _positive(f"the time of {self.name!r}", self.after_s)

    @property
    def speed_up(self) -> float | None:
        """How many times faster the kernel became, if both times are known."""
        return self.before_s / self.after_s if self.before_s and self.after_s else None

    @property
    def cost_s(self) -> float:
        """What the kernel costs the model before tuning, or after if that is all that is known."""
        return self.weight * (self.before_s or self.after_s or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureCount:
    """How many trials failed in one way, with one message as an example."""

    kind: str
    count: int
    example: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCluster:
    """Tasks that share a representative's schedules."""

    representative: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gift:
    """A schedule one kernel gave to another; times are the receiver's, untuned and with the gift."""

    donor: str
    receiver: str
    source: str = ""
    before_s: float | None = None
    after_s: float | None = None
    used: bool = False

    @property
    def gain(self) -> float | None:
        """Times faster (above 1) or slower (below 1) than the untuned kernel."""
        return self.before_s / self.after_s if self.before_s and self.after_s else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidityCell:
    """Trials with one value of each of two knobs."""

    x: str
    y: str
    valid: int
    invalid: int
    predicted: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnobPair:
    """Where two knobs together lead to failure; values in their own order."""

    x_knob: str
    y_knob: str
    x_values: tuple[str, ...]
    y_values: tuple[str, ...]
    cells: tuple[ValidityCell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Validity:
    """What failed where in the space of a kernel, and how much each knob matters (shares of 1)."""

    kernel: str = ""
    pairs: tuple[KnobPair, ...] = ()
    importance: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One line about how it was measured."""

    name: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftPoint:
    """The canary kernel's time at a moment of the run, as a ratio to its quiet time."""

    at_s: float
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData:
    """Everything on the page; empty parts are left out of it."""

    run: str
    command: str = ""
    status: str = "finished"
    created: float = 0.0
    seconds: float | None = None
    message: str = ""
    models: tuple[ModelResult, ...] = ()
    tasks: tuple[TaskResult, ...] = ()
    resources: tuple[ResourceInfo, ...] = ()
    spans: tuple[ResourceSpan, ...] = ()
    failures: tuple[FailureCount, ...] = ()
    clusters: tuple[ShownCluster, ...] = ()
    gifts: tuple[Gift, ...] = ()
    validity: tuple[Validity, ...] = ()
    stories: tuple[SearchStory, ...] = ()
    facts: tuple[Fact, ...] = ()
    drift: tuple[DriftPoint, ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    """What people call jobs and tasks, by their ids."""

    def called(self, identity: str) -> str:
        """The name for people of a job or task."""
        return self.names.get(identity, identity)
