"""What a user gives: a space, how to build a configuration, how to run what was built."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tuneloom.tuners.kernel.space import Configuration, Space


class WrongResult(Exception):  # noqa: N818 - the name is the message
    """Raised by a runner whose kernel computed something else than it should."""


def spare_process(error: BaseException) -> None:
    """Note that an error of a runner left its process fit for other runs."""
    error.harmless = True  # type: ignore[attr-defined]


def spoils(error: BaseException) -> bool:
    """Whether the process of a failed run should serve nobody else, as far as anybody knows."""
    return not getattr(error, "harmless", False)


@dataclass(frozen=True, slots=True)
class Built:
    """What a builder made, with what the compiler revealed; `payload` must survive pickling."""

    payload: Any
    features: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ran:
    """Seconds per run of each repeat, and what the kernel computed."""

    seconds: Sequence[float]
    output: Any = None


Build = Callable[[Configuration], Any]
Run = Callable[[Any], Any]


@dataclass(frozen=True)
class Kernel:
    """A kernel to tune.

    `build` gets a configuration and returns what `run` needs (or a `Built`); `run`
    returns seconds, several seconds, a pair of seconds and output, or a `Ran`. `check`
    is a function of the output that tells whether it is right, or the right output
    itself. All three are carried to other processes, where an exception, a crash or a
    hang costs one trial. `device` is the key of the device to run on; without one it is
    what the runner says, or else the CPU.
    """

    name: str
    space: Space
    build: Build
    run: Run
    check: Any = None
    device: str = ""

    @property
    def device_key(self) -> str:
        """The device that the kernel runs on."""
        return self.device or str(getattr(_owner(self.run), "device_key", "cpu"))

    @property
    def builds_on_device(self) -> bool:
        """Whether building needs the device as well, which then no one else may hold."""
        return bool(getattr(_owner(self.build), "builds_on_device", False))

    def prepared(self) -> "Kernel":
        """The same with what all trials have in common done once, such as computing the reference."""
        return replace(self, build=_prepared(self.build), run=_prepared(self.run))


def _owner(function: Any) -> Any:
    """The object whose method it is, or the callable itself."""
    return getattr(function, "__self__", function)


def _prepared(function: Any) -> Any:
    prepare = getattr(function, "prepared", None)
    return function if prepare is None else prepare()


def as_built(made: Any) -> Built:
    """What a builder returned, as a `Built`."""
    return made if isinstance(made, Built) else Built(made)


def as_ran(returned: Any, checked: bool = False) -> Ran:
    """What a runner returned, as a `Ran`; raises TypeError for anything without a time.

    Two numbers are two times, or a time and an output where outputs are checked.
    """
    if isinstance(returned, Ran):
        return returned
    if isinstance(returned, int | float):
        return Ran((float(returned),))
    pair = isinstance(returned, tuple) and len(returned) == 2
    if pair and (checked or not isinstance(returned[1], int | float)):
        return Ran(as_ran(returned[0]).seconds, returned[1])
    several = isinstance(returned, Sequence | np.ndarray) and not isinstance(returned, str)
    if several and len(returned):
        return Ran(tuple(float(second) for second in returned))
    raise TypeError(f"a runner returns seconds, got {type(returned).__name__}")


def is_right(check: Any, output: Any) -> bool:
    """Whether an output passes a check, which is a function or the right output itself."""
    if check is None:
        return True
    if callable(check):
        return bool(check(output))
    return bool(np.allclose(np.asarray(output), np.asarray(check), rtol=1e-3, atol=1e-4))
