"""Kernels to tune."""

from dataclasses import dataclass, field

from tuneloom.model.pickling import quickly_pickled


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One kernel of a model, with how often the model runs it.

    `key` names the workload on its target and is the same in every model and
    process; `payload` is opaque to all but the task's tuner.
    """

    key: str
    name: str
    weight: int = 1
    gflop: float = 0.0
    shapes: str = ""
    kernel_class: str = ""
    payload: bytes = field(default=b"", repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.weight < 1:
            raise ValueError(f"task {self.name!r} needs a weight of at least 1, got {self.weight}")
