"""Kernels as text with everything needed to compile and launch them."""

from dataclasses import dataclass, field

from tuneloom.backends.cuda.code import Argument
from tuneloom.backends.meaning import TensorType


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelText:
    """One kernel: a Triton function whose parameters are all pointers."""

    name: str
    source: str = field(repr=False)
    arguments: tuple[Argument, ...]
    grid: tuple[int, int, int]
    warps: int
    stages: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Kernels that are launched one after another, and the scratch tensors between them."""

    kernels: tuple[KernelText, ...]
    scratch: tuple[TensorType, ...] = ()
