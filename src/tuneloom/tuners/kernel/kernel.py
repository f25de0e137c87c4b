"""What a user gives: a space, how to build a configuration, how to run what was built."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import cloudpickle
import numpy as np

from tuneloom.model import Task
from tuneloom.tuners.kernel.space import Configuration, Space


class WrongResult(Exception):  # noqa: N818 - the name is the message
    """Raised by a runner whose kernel computed something else than it should."""


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
    itself. Both functions are carried to other processes, where an exception, a crash
    or a hang costs one trial.
    """

    name: str
    space: Space
    build: Build
    run: Run
    check: Any = None

    def task(self) -> Task:
        """The kernel as a task that a scheduler can carry around."""
        payload = cloudpickle.dumps(self)
        shapes = " x ".join(str(count) for count in self.space.shape)
        return Task(
            key=f"kernel:{self.name}", name=self.name, shapes=shapes, kernel_class="kernel", payload=payload
        )


def as_built(made: Any) -> Built:
    """What a builder returned, as a `Built`."""
    return made if isinstance(made, Built) else Built(made)


def as_ran(returned: Any) -> Ran:
    """What a runner returned, as a `Ran`; raises TypeError for anything without a time."""
    if isinstance(returned, Ran):
        return returned
    if isinstance(returned, int | float):
        return Ran((float(returned),))
    if isinstance(returned, tuple) and len(returned) == 2 and not isinstance(returned[1], int | float):
        return Ran(as_ran(returned[0]).seconds, returned[1])
    if isinstance(returned, Sequence) and returned:
        return Ran(tuple(float(second) for second in returned))
    raise TypeError(f"a runner returns seconds, got {type(returned).__name__}")


def is_right(check: Any, output: Any) -> bool:
    """Whether an output passes a check, which is a function or the right output itself."""
    if check is None:
        return True
    if callable(check):
        return bool(check(output))
    return bool(np.allclose(np.asarray(output), np.asarray(check), rtol=1e-3, atol=1e-4))
