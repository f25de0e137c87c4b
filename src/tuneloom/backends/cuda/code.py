"""Machine code for a GPU with everything needed to launch it."""

from dataclasses import dataclass, field

from tuneloom.backends.meaning import TensorType


@dataclass(frozen=True, slots=True)
class Argument:
    """A pointer that a kernel gets: an `input` or `output` of the meaning, a `scratch` tensor, or `null`."""

    role: str
    number: int = 0
    dtype: str = ""

    @property
    def name(self) -> str:
        """Its name in the source."""
        return f"{self.role}{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel with its grid; its parameters are the pointers of `arguments`, in this order.

    What a compiler adds of its own is among them: Triton's kernels end with two pointers to scratch
    memory, which are null where a kernel needs none.
    """

    symbol: str
    cubin: bytes = field(repr=False)
    grid: tuple[int, int, int]
    threads: int
    shared_bytes: int
    arguments: tuple[Argument, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceCode:
    """Kernels that are launched one after another, and the scratch tensors that they share."""

    launches: tuple[Launch, ...]
    scratch: tuple[TensorType, ...] = ()
