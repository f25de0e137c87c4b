"""Timing one built kernel on the device that this process may use, its own or a board's."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, TypeVar

import numpy as np

from tuneloom.backends.base import Backend
from tuneloom.backends.finding import backend_for
from tuneloom.backends.resolving import resolve_target
from tuneloom.backends.watching import ConditionWatch
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.number_types import numpy_type
from tuneloom.errors import TargetError
from tuneloom.model import Failure, FailureKind, Measurement, MeasuringRules
from tuneloom.tuners.tvm.boards.bench import bench, board_session
from tuneloom.tuners.tvm.inserting import timed
from tuneloom.tuners.tvm.measuring.artifacts import BuiltKernel

_MOST_MESSAGE = 2000
_REPEATS, _COOLING_S = 3, 0.5
T = TypeVar("T")
_BLOCK = 65_537  # a prime, so that rows of common sizes don't repeat


def profile_kernel(payload: bytes, rules: MeasuringRules, best_s: float | None) -> Measurement | Failure:
    """Run a kernel once; repeat it only if it may become the best.

    On a device that says what it does, that is kept with the times.
    """
    started = time.perf_counter()
    try:
        built = BuiltKernel.from_bytes(payload)
        if built.implementer:
            outcome = timed(resolve_target(built.target), built.implementer, built.library)
            return outcome if isinstance(outcome, Failure) else _after(outcome, started)
        kernel = LoadedKernel(built)
        seconds, told = undisturbed(lambda: _timings(kernel, rules, best_s), watch_of(built.device))
    except Exception as error:
        return Failure(kind=FailureKind.RUN_ERROR, message=str(error).strip()[:_MOST_MESSAGE])
    spent = time.perf_counter() - started
    return Measurement(seconds=seconds, profile_s=spent, counters=told)


def undisturbed(
    measure: Callable[[], T], watch: ConditionWatch | None, pause: Callable[[float], None] = time.sleep
) -> tuple[T, Mapping[str, float]]:
    """What was measured, and how the device stood behind it; a throttled one gets time and is asked again.

    If it stays so, the last measurement counts, and `repeated` among the conditions says how often it was.
    """
    found = measure()
    if watch is None:
        return found, {}
    for repeated in range(_REPEATS):
        now = watch.now()
        if not now.throttled:
            return found, {**now.numbers, **({"repeated": repeated} if repeated else {})}
        pause(_COOLING_S)
        found = measure()
    return found, {**watch.now().numbers, "repeated": _REPEATS}


@cache
def watch_of(device: str) -> ConditionWatch | None:
    """Who looks at the device of this process; nobody on a board."""
    backend = _backend_here(device)
    return None if backend is None else backend.watch()


def _backend_here(device: str) -> Backend | None:
    """The backend of a device of this process; none on a board, or if nobody calls the device its own."""
    if board_session() is not None:
        return None
    try:
        return backend_for(device)
    except TargetError:
        return None


def _after(outcome: Measurement, started: float) -> Measurement:
    return replace(outcome, profile_s=time.perf_counter() - started)


def loaded(payload: bytes) -> "LoadedKernel | OwnClockKernel":
    """A built kernel, ready to be timed by whichever clock is its own."""
    built = BuiltKernel.from_bytes(payload)
    return OwnClockKernel(built) if built.implementer else LoadedKernel(built)


class OwnClockKernel:
    """A kernel on a device with a clock of its own, which shows the same whenever it runs."""

    def __init__(self, built: BuiltKernel) -> None:
        outcome = timed(resolve_target(built.target), built.implementer, built.library)
        if isinstance(outcome, Failure):
            raise ValueError(outcome.message)
        self._seconds = outcome.best_s
        self.steady = True

    def time(self, number: int, repeats: int) -> tuple[float, ...]:
        """Seconds per run, once for each repeat."""
        return (self._seconds,) * repeats


def _timings(kernel: "LoadedKernel", rules: MeasuringRules, best_s: float | None) -> tuple[float, ...]:
    (first,) = kernel.time(number=1, repeats=1)
    if best_s is not None and first > rules.hopeless_ratio * best_s:
        return (first,)
    number = max(1, math.ceil(rules.min_repeat_ms / 1e3 / max(first, 1e-9)))
    return kernel.time(number=number, repeats=rules.repeats)


class LoadedKernel:
    """A kernel with arguments on its device, ready to be timed."""

    def __init__(self, built: BuiltKernel) -> None:
        tvm = load_tvm()
        place = bench()
        self._device = place.device(built.device)
        self._module = place.load(built.library)
        random = np.random.default_rng(0)
        self._arguments = [
            tvm.runtime.tensor(
                np.full(shape, built.lengths, dtype)
                if built.lengths and "int" in dtype
                else random_values(random, dtype, shape),
                self._device,
            )
            for dtype, shape in built.arguments
        ]
        backend = _backend_here(built.device)
        # What the stopwatch calls must not hold this kernel: a circle would keep its memory on the device.
        run = partial(self._module["main"], *self._arguments)
        self._stopwatch = None if backend is None else backend.stopwatch(run, self._device)
        self.steady = backend is not None and backend.steady

    def time(self, number: int, repeats: int) -> tuple[float, ...]:
        """Seconds per run, once for each repeat; after a run that does not count, with cold caches."""
        if self._stopwatch is not None:
            return self._stopwatch(number, repeats)
        evaluate = self._module.time_evaluator("main", self._device, number=number, repeat=repeats)
        return tuple(float(seconds) for seconds in evaluate(*self._arguments).results)


def random_values(random: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> Any:
    """Values that neither vanish nor explode, in any type TVM kernels take.

    Large arrays repeat a block of chance: making a hundred million numbers would take
    longer than running the kernel.
    """
    size = math.prod(shape)
    block = _block(random, dtype, min(size, _BLOCK))
    return np.resize(block, size).reshape(shape)


def _block(random: np.random.Generator, dtype: str, size: int) -> Any:
    if dtype == "bool":
        return random.integers(0, 2, size).astype(np.bool_)
    if "int" in dtype:
        return random.integers(0, 2, size).astype(dtype)
    return random.uniform(-1, 1, size).astype(numpy_type(dtype))
