"""Timing one built kernel on the device that this process may use, its own or a board's."""

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from tuneloom.backends.finding import backend_for
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model import Failure, FailureKind, Measurement, MeasuringRules
from tuneloom.tuners.tvm.boards.bench import bench, board_session
from tuneloom.tuners.tvm.inserting import timed
from tuneloom.tuners.tvm.measuring.artifacts import BuiltKernel

_MOST_MESSAGE = 2000
_BLOCK = 65_537  # a prime, so that rows of common sizes don't repeat


def profile_kernel(payload: bytes, rules: MeasuringRules, best_s: float | None) -> Measurement | Failure:
    """Run a kernel once; repeat it only if it may become the best."""
    started = time.perf_counter()
    try:
        built = BuiltKernel.from_bytes(payload)
        if built.implementer:
            outcome = timed(resolve_target(built.target), built.implementer, built.library)
            return outcome if isinstance(outcome, Failure) else _after(outcome, started)
        seconds = _timings(LoadedKernel(built), rules, best_s)
    except Exception as error:
        return Failure(kind=FailureKind.RUN_ERROR, message=str(error).strip()[:_MOST_MESSAGE])
    return Measurement(seconds=seconds, profile_s=time.perf_counter() - started)


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
            tvm.runtime.tensor(random_values(random, dtype, shape), self._device)
            for dtype, shape in built.arguments
        ]
        here = board_session() is None
        self._stopwatch = backend_for(built.device).stopwatch(self._run, self._device) if here else None

    def time(self, number: int, repeats: int) -> tuple[float, ...]:
        """Seconds per run, once for each repeat; after a run that does not count, with cold caches."""
        if self._stopwatch is not None:
            return self._stopwatch(number, repeats)
        evaluate = self._module.time_evaluator("main", self._device, number=number, repeat=repeats)
        return tuple(float(seconds) for seconds in evaluate(*self._arguments).results)

    def _run(self) -> None:
        self._module["main"](*self._arguments)


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
    if dtype == "bfloat16":
        import ml_dtypes

        return random.uniform(-1, 1, size).astype(ml_dtypes.bfloat16)
    return random.uniform(-1, 1, size).astype(dtype)
