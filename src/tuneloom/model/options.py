"""Options of jobs in Python; made by `python -m tuneloom.app.requests.describing`."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict


class JobOptions(TypedDict, total=False):
    """The fields of jobs; a kind of job may have more."""

    name: str
    """Name of the job."""
    out: str
    """Folder for the bundle; must be new or empty."""
    tuner: str
    """Tuner to use."""
    target: str
    """`cpu`, `cuda`, or a TVM target in JSON."""
    device: str
    """Key of the device to measure on."""
    trials: int
    """Number of trials per model."""
    seconds: float
    """Stop tuning a model after this many seconds."""
    goal_ms: float
    """Stop when the model's latency is at most this many milliseconds."""
    goal_ratio: float
    """Stop when the model takes at most this many times as long as in ONNX Runtime."""
    batch: int
    """Number of candidates per batch."""
    run_timeout_s: float
    """Time limit for one run, in seconds."""
    build_timeout_s: float
    """Time limit for one build, in seconds."""
    shapes: Mapping[str, Sequence[int | str] | Sequence[Sequence[int | str]]]
    """Shapes of inputs, by name; several shapes, or a range such as 1..64, make one bundle for all."""
    pad: bool
    """Let the bundle pad smaller inputs with zeros to the next larger of its shapes."""
    only_tvm: bool
    """Leave nothing to other runtimes."""
    state: str
    """Outputs that become inputs of the next run, as INPUT=OUTPUT, separated by commas."""
    self_contained: bool
    """Exclude code that needs other libraries at run time."""
    goal: Literal["latency", "energy"]
    """What to optimise: the latency of a model, or the energy of a run."""
    dtype: Literal["float32", "float16", "bfloat16", "tf32", "tf32_convolutions", "fp8", "int8"]
    """Number type for convolutions and products."""
    samples: str
    """Inputs to calibrate fp8 or int8 on: a NumPy archive with one array per input, under its name."""
    tolerance: float
    """Largest relative change of the outputs that a lower precision may cause."""
    layout: Literal["blocked", "plain", "channels_last", "channels_first"]
    """Tensor layout of the whole model."""
    seed: int
    """Random seed."""
    reuse: Literal["auto", "off", "transfer", "share", "transfer-only"]
    """How to reuse schedules of other kernels; see `tuneloom plan`."""
    priority: int
    """Jobs with a higher priority go first."""
    deadline_s: float
    """The job should finish within this many seconds of being submitted."""
    arrival_s: float
    """Start the job this many seconds after it is submitted."""
    waits_for_devices: bool
    """Wait for a device with this key to appear instead of failing."""
