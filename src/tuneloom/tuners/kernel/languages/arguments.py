"""The arguments of a kernel: arrays filled from a seed, and numbers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.errors import SpaceError

_FILLS = ("random", "zeros", "ones", "index")
_TYPES = ("float32", "float64", "int32", "int64", "uint8", "float16")


@dataclass(frozen=True, slots=True)
class Array:
    """An array argument; `output` marks what the kernel computes and is compared."""

    dtype: str
    shape: tuple[int, ...]
    fill: str = "random"
    output: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in _TYPES:
            raise SpaceError(f"no array type {self.dtype!r}; known: {', '.join(_TYPES)}")
        if self.fill not in _FILLS:
            raise SpaceError(f"no fill {self.fill!r}; known: {', '.join(_FILLS)}")
        if not self.shape or min(self.shape) < 1:
            raise SpaceError(f"an array needs a shape of positive sizes, got {self.shape}")

    def made(self, rng: np.random.Generator) -> NDArray[Any]:
        """The array, filled."""
        if self.fill == "index":
            return np.arange(np.prod(self.shape)).reshape(self.shape).astype(self.dtype)
        if self.fill != "random":
            return np.full(self.shape, 0 if self.fill == "zeros" else 1, dtype=self.dtype)
        if np.dtype(self.dtype).kind == "f":
            return rng.standard_normal(self.shape).astype(self.dtype)
        return rng.integers(0, 100, self.shape).astype(self.dtype)


@dataclass(frozen=True, slots=True)
class Number:
    """A number passed by value."""

    dtype: str
    value: float

    def __post_init__(self) -> None:
        if self.dtype not in ("int32", "int64", "float32", "float64"):
            raise SpaceError(f"no number type {self.dtype!r}; known: int32, int64, float32, float64")
        if not _holds(self.dtype, self.value):
            raise SpaceError(
                f"{self.value!r} can't be passed as {self.dtype}; give a finite number in its range"
            )


def _holds(dtype: str, value: float) -> bool:
    """Whether a number can be passed as this type without becoming another one."""
    if dtype.startswith("float"):
        return abs(value) <= float(np.finfo(dtype).max)
    limits = np.iinfo(dtype)
    return bool(limits.min <= value <= limits.max) and value == int(value)


Argument = Array | Number


def made(arguments: Sequence[Argument], seed: int = 0) -> list[Any]:
    """Fresh values for all arguments, the same for the same seed."""
    rng = np.random.default_rng([seed, 7])
    return [a.made(rng) if isinstance(a, Array) else np.dtype(a.dtype).type(a.value) for a in arguments]


def outputs(arguments: Sequence[Argument], values: Sequence[Any]) -> list[NDArray[Any]]:
    """The values of the arguments marked as outputs."""
    pairs = zip(arguments, values, strict=True)
    return [value for argument, value in pairs if isinstance(argument, Array) and argument.output]


@lru_cache(maxsize=8)
def expected(
    reference: Callable[[list[Any]], Sequence[NDArray[Any]]], arguments: tuple[Argument, ...]
) -> list[NDArray[Any]]:
    """The right outputs, computed once a process."""
    return [np.array(output) for output in reference(made(arguments))]


@dataclass(frozen=True, slots=True, eq=False)
class KnownOutputs:
    """A reference that was computed before."""

    right: tuple[NDArray[Any], ...]

    def __call__(self, values: list[Any]) -> Sequence[NDArray[Any]]:
        """The right outputs, whatever the values."""
        return self.right


def close(computed: Sequence[NDArray[Any]], right: Sequence[NDArray[Any]], tolerance: float) -> bool:
    """Whether all outputs agree, relative to the largest value expected."""
    if len(computed) != len(right):
        return False
    return all(_close(np.asarray(c), np.asarray(r), tolerance) for c, r in zip(computed, right, strict=True))


def _close(computed: NDArray[Any], right: NDArray[Any], tolerance: float) -> bool:
    if computed.shape != right.shape or not np.isfinite(computed).all():
        return False
    scale = float(np.abs(right).max()) or 1.0
    return float(np.abs(computed.astype(np.float64) - right.astype(np.float64)).max()) <= tolerance * scale
