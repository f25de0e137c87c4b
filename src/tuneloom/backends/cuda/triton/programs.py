"""Kernels as text with everything needed to compile and launch them."""

from dataclasses import dataclass, field, replace

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
class TritonProgram:
    """Kernels that are launched one after another, and the scratch tensors between them."""

    kernels: tuple[KernelText, ...]
    scratch: tuple[TensorType, ...] = ()

    def named(self, symbol: str) -> "TritonProgram":
        """The same with kernels that are named after a symbol."""
        names = {each.name: f"{symbol}_{number}" for number, each in enumerate(self.kernels)}
        kernels = [
            replace(each, name=names[each.name], source=each.source.replace(each.name, names[each.name]))
            for each in self.kernels
        ]
        return replace(self, kernels=tuple(kernels))
