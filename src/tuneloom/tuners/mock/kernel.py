"""What a mock kernel is: a landscape of times, stages that take a while, points that fail."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

from tuneloom.errors import InputError
from tuneloom.model import ROUND, FailureKind, Task

STAGES = tuple(stage.value for stage in ROUND)
KINDS = tuple(kind.value for kind in FailureKind)
NUMBERS = ("tasks", "size", "best_ms", *STAGES, *KINDS)
SCHEME = "mock:"
_SLOWEST = 8.0  # how many times slower than the best the far end of the landscape is


@dataclass(frozen=True, slots=True, kw_only=True)
class MockKernel:
    """One kernel: `stage_s` says how long its stages take, `failures` which share of points fails how.

    The landscape is the same in every process: a valley around one point, roughened by
    a hash of the point.
    """

    name: str
    size: int = 256
    best_s: float = 1e-3
    stage_s: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.size < 1 or self.best_s <= 0:
            raise InputError(f"mock kernel {self.name!r} needs a positive size and time")
        if any(seconds < 0 for seconds in self.stage_s.values()):
            raise InputError(f"mock kernel {self.name!r}: no stage takes less than 0 s")
        if not 0 <= sum(self.failures.values()) <= 1 or min(self.failures.values(), default=0) < 0:
            raise InputError(f"mock kernel {self.name!r}: shares of failures lie between 0 and 1")

    def to_bytes(self) -> bytes:
        """The kernel as the payload of a task."""
        return json.dumps(asdict(self), sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, payload: bytes) -> "MockKernel":
        data: dict[str, Any] = json.loads(payload)
        return cls(**data)

    def time_s(self, point: int) -> float:
        """What the kernel takes at a point."""
        valley = self._chance("valley") * self.size
        distance = abs(point + 0.5 - valley) / self.size
        rough = 1 + 0.3 * self._chance(f"rough {point}")
        return self.best_s * (1 + (_SLOWEST - 1) * distance**2) * rough

    def failure(self, point: int) -> FailureKind | None:
        """How the point fails, if it does; the first one, the default, never does."""
        drawn, reached = self._chance(f"failure {point}"), 0.0
        for kind, share in self.failures.items():
            reached += share
            if point and drawn < reached:
                return FailureKind(kind)
        return None

    def _chance(self, what: str) -> float:
        digest = hashlib.sha256(f"{self.name}\n{what}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64


def mock_tasks(source: str) -> tuple[Task, ...]:
    """The tasks of `mock:tasks=3,size=64,build=0.02,build_error=0.1`; raises InputError for others."""
    numbers = _numbers(source)
    stage_s = {name: numbers[name] for name in STAGES if name in numbers}
    failures = {name: numbers[name] for name in KINDS if name in numbers}
    kernels = [
        MockKernel(
            name=f"kernel-{number}",
            size=int(numbers.get("size", 256)),
            best_s=numbers.get("best_ms", 1.0) * 1e-3 * (number + 1),
            stage_s=stage_s,
            failures=failures,
        )
        for number in range(int(numbers.get("tasks", 1)))
    ]
    return tuple(_task(kernel, weight) for weight, kernel in enumerate(kernels, 1))


def _task(kernel: MockKernel, weight: int) -> Task:
    payload = kernel.to_bytes()
    key = f"mock-{hashlib.sha256(payload).hexdigest()[:16]}"
    return Task(
        key=key, name=kernel.name, weight=weight, gflop=0.1 * weight, kernel_class="mock", payload=payload
    )


def _numbers(source: str) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for piece in filter(None, source.removeprefix(SCHEME).split(",")):
        name, _, text = piece.partition("=")
        if name not in NUMBERS:
            raise InputError(f"a mock model has no {name!r}; known: {', '.join(NUMBERS)}")
        try:
            numbers[name] = float(text)
        except ValueError:
            raise InputError(f"{piece!r} in {source!r} needs a number, as in {name}=1") from None
        if not isfinite(numbers[name]):
            raise InputError(f"{piece!r} in {source!r} needs a finite number, as in {name}=1")
    if not 1 <= numbers.get("tasks", 1) <= 10_000:
        raise InputError(f"a mock model has 1 to 10,000 tasks, not {numbers['tasks']:g}")
    return numbers
