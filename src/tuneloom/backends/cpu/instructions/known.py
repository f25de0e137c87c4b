"""Instructions that schedules may ask for: found by a CPU's features, made known to TVM once in a process."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol, TypeVar

from tuneloom.compiler.lazy import s_tir

_registered: set[str] = set()


class LaneInstruction(Protocol):
    """An instruction that adds several products in every lane of a vector."""

    @property
    def feature(self) -> str:
        """The feature of a CPU that brings it."""

    @property
    def name(self) -> str:
        """Under which name schedules ask for it."""


Instruction = TypeVar("Instruction", bound=LaneInstruction)
Described = Callable[[Instruction], Any]


def found_in(
    features: Collection[str],
    known: Sequence[Instruction],
    loops: Described[Instruction],
    instruction: Described[Instruction],
) -> Instruction | None:
    """The instruction of a CPU with these features, if it has one; this process can schedule with it then.

    `loops` are what it computes and what a schedule replaces, `instruction` is what takes their place.
    """
    found = next((one for one in known if one.feature in features), None)
    if found is not None and found.name not in _registered:
        s_tir.TensorIntrin.register(found.name, loops(found), instruction(found), override=True)
        _registered.add(found.name)
    return found
