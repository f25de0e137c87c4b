"""Kernel Tuner on the same recordings, in its own simulation mode.

It gets the recording as its cache, the grid as its parameters, and for a recording
that is not a whole grid a restriction that allows exactly what was recorded. Its
strategies run with the options they ship with. Needs the package `kernel_tuner`.
"""

import contextlib
import io
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from tuneloom.errors import InputError
from tuneloom.tuners.replay.recording import Recording, Row

STRATEGIES = (
    "random_sample",
    "genetic_algorithm",
    "pso",
    "firefly_algorithm",
    "dual_annealing",
    "simulated_annealing",
    "diff_evo",
    "greedy_ils",
    "greedy_mls",
    "ordered_greedy_mls",
    "mls",
    "minimize",
    "basinhopping",
    "hybrid_vndx",
    "adaptive_tabu_greywolf",
    "bayes_opt",
)


class KernelTunerSimulation:
    """One recording, opened once; `run` gives the times it saw in order, None for failures.

    While a run lasts, Kernel Tuner's reading of the cache file is answered from memory,
    which changes how long a run takes and nothing else. Its search space is built anew
    for every run: it remembers which neighbours were handed out, and runs that shared
    one would profit from each other.
    """

    def __init__(self, recording: Recording) -> None:
        try:
            from kernel_tuner import interface, util
        except ImportError:
            raise InputError("kernel-tuner is not installed; pip install 'tuneloom[bench]'") from None
        self._recording, self._interface, self._util = recording, interface, util
        self._names = recording.space.names
        self._parameters = {name: list(values) for name, values in recording.space.knobs.items()}
        self._cache = self._filled()
        self._restrictions = self._restriction()

    def _filled(self) -> dict[str, dict[str, Any]]:
        cache = {}
        for point in self._recording.space.points():
            values = self._recording.space.configuration(point)
            cache[",".join(str(v) for v in values.values())] = self._result(values, point)
        return cache

    def _result(self, values: dict[str, Any], point: Any) -> dict[str, Any]:
        entry = self._recording.at(point)
        times = dict.fromkeys(("compile_time", "verification_time", "benchmark_time"), 0)
        result = {**values, **times, "strategy_time": 0, "framework_time": 0, "timestamp": ""}
        if entry.time_ms is None:
            error = self._util.RuntimeFailedConfig()
            return {**result, "time": error, "__error__": error}
        return {**result, "time": entry.time_ms}

    def run(self, strategy: str, seed: int, evaluations: int) -> list[float | None]:
        """The times of the distinct configurations that one strategy evaluated, in milliseconds."""
        return [self._recording.entry(row).time_ms for row in self.visited(strategy, seed, evaluations)]

    def visited(self, strategy: str, seed: int, evaluations: int) -> list[Row]:
        """The distinct configurations that one strategy evaluated, in order."""
        random.seed(seed)
        np.random.seed(seed)
        with (
            self._answered_from_memory(),
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            results, _ = self._interface.tune_kernel(
                "recorded",
                "__global__ void recorded() {}",
                1,
                [],
                self._parameters,
                restrictions=self._restrictions,
                strategy=strategy,
                strategy_options={"max_fevals": evaluations},
                simulation_mode=True,
                cache="recorded.json",
                quiet=True,
            )
        return list(dict.fromkeys(tuple(result[name] for name in self._names) for result in results))

    def _restriction(self) -> Any:
        space = self._recording.space
        if len(self._cache) == int(np.prod(space.shape)):
            return None
        allowed = {tuple(space.configuration(point).values()) for point in space.points()}
        return [self._util.FunctionConstraint(lambda *values: values in allowed)]

    @contextlib.contextmanager
    def _answered_from_memory(self) -> Iterator[None]:
        saved = (self._util.process_cache, self._util.close_cache)
        self._util.process_cache = lambda *_: self._cache
        self._util.close_cache = lambda *_: None
        try:
            yield
        finally:
            self._util.process_cache, self._util.close_cache = saved
