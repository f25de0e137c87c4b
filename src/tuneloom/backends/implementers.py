"""Who can make code for a kernel beside TVM's schedules: templates in another language, a library, a device.

An implementer *claims* a kernel: it says which whole numbers it leaves open and what it would try first.
Nothing is compiled for that. A chosen configuration becomes an *insert*: a function that takes the
place of the kernel in the model, and whatever code it calls.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from tuneloom.backends.meaning import Meaning
from tuneloom.compiler.target import TargetSpec
from tuneloom.model import Failure, Measurement

Configuration = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelKernel:
    """A kernel to make code for: its loops (a module with the function `main`) and, if known, its meaning."""

    module: Any = field(repr=False, compare=False)
    meaning: Meaning | None
    target: TargetSpec


class KnobSpace(Protocol):
    """Named whole numbers with their values, and what to try first, the best guess in front."""

    @property
    def knobs(self) -> Mapping[str, tuple[int, ...]]: ...

    @property
    def guesses(self) -> tuple[Configuration, ...]: ...


class Claim(Protocol):
    """An implementer's word that it takes a kernel."""

    @property
    def space(self) -> KnobSpace: ...

    def refusal(self, configuration: Configuration) -> str:
        """Why a configuration is not worth building, as far as that is known; empty if it may work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """A space as plain data.

    With `learned`, the search sees refused configurations as well: it learns from builds that fail which
    are refused. Guesses and schedules of other kernels are checked in any case.
    """

    knobs: Mapping[str, tuple[int, ...]]
    guesses: tuple[Configuration, ...]
    learned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """What must be there at run time: one of these shared libraries, each with the package that brings it.

    `version` is the library's function that returns its version as a whole number, such as 91002 for 9.10.2.
    """

    libraries: Mapping[str, str]
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Insert:
    """What takes the place of a kernel in a model.

    `function` is a PrimFunc with the kernel's own parameters; where it takes one in another type, weights
    are converted when the model is built, and anything else when it runs. `modules` are TVM runtime modules
    with the code that it calls: machine code for a device, or objects that the linker adds to the library.
    """

    function: Any = field(repr=False, compare=False)
    modules: tuple[Any, ...] = field(default=(), repr=False, compare=False)


class Implementer(ABC):
    """Makes code for kernels that it claims. A backend lists its implementers, the most promising first."""

    name: ClassVar[str]
    requirements: ClassVar[tuple[Requirement, ...]] = ()
    """What a bundle with its code needs at run time."""
    remembers: ClassVar[bool] = False
    """Whether its compiler keeps what it compiled where the next process finds it."""

    @abstractmethod
    def claim(self, kernel: ModelKernel) -> Claim | None:
        """A claim on a kernel, or None if it can't take it; the same in every process."""

    def alone(self, claim: Any, configuration: Configuration) -> bytes | Failure | None:
        """What measures a configuration on a device with a clock of its own, such as a simulator.

        None, the default, has the insert built and timed by the clock of the process.
        """
        return None

    def timed(self, alone: bytes) -> Measurement | Failure:
        """Run what `alone` made, on the device that this process holds, by the device's own clock."""
        raise NotImplementedError(f"{self.name} has no clock of its own")

    @abstractmethod
    def insert(self, claim: Any, configuration: Configuration, symbol: str) -> Insert | Failure:
        """The code of a configuration; `symbol` is unique in the model and has to begin all names in it."""
