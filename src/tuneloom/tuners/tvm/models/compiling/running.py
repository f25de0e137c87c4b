"""A compiled model with its parameters on a device: in this process, or on a board."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.threads import use_own_cores
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.boards.session import BoardSession
from tuneloom.tuners.tvm.runner.tensors import InputTensors, array_of
from tuneloom.tuners.tvm.runner.weights import on_device

Array = NDArray[Any]
DEVICE_CLOCK = "tuneloom_device_clock"
"""The function of a library that says how many seconds more its device took than the process did."""


_MOST_RUNS = 10_000


def timer_of(run: Callable[[], Any], now: Callable[[], float] = time.perf_counter) -> Callable[[], float]:
    """A function that runs something once and returns the seconds by a clock."""

    def once() -> float:
        started = now()
        run()
        return now() - started

    return once


def timed_for(timer: Callable[[], float], seconds: float, least: int = 5) -> list[float]:
    """What single runs take, for so long; at least so many."""
    times: list[float] = []
    ends = time.perf_counter() + seconds
    while len(times) < least or (time.perf_counter() < ends and len(times) < _MOST_RUNS):
        times.append(timer())
    return times


class OpenModel(Protocol):
    """A model with its parameters on a device; used by one thread."""

    def run(self, values: Sequence[Array]) -> list[Array]:
        """NumPy in, NumPy out, in the order of the model's interface."""

    def timer(self, values: Sequence[Array]) -> Callable[[], float]:
        """A function that runs the model once on these values and returns the seconds."""


class RunningModel:
    """A model in this process; models of one bundle share the weights that are `placed` on its device."""

    def __init__(
        self,
        executable: Any,
        parameters: Sequence[Array],
        outputs: Sequence[TensorInfo],
        device: str,
        placed: dict[int, Any] | None = None,
    ) -> None:
        tvm = load_tvm()
        use_own_cores()
        self._tvm = tvm
        self._outputs = tuple(outputs)
        self.device = tvm.device(device)
        self._machine = relax.VirtualMachine(executable, self.device)
        there = {} if placed is None else placed
        for value in parameters:
            if id(value) not in there:
                there[id(value)] = on_device(value, self.device)
        self._parameters = [there[id(value)] for value in parameters]
        self._inputs = InputTensors(tvm.runtime.tensor, self.device)
        self._ahead = _device_clock(self._machine)

    def run(self, values: Sequence[Array]) -> list[Array]:
        """NumPy in, NumPy out, in the order of the model's interface."""
        result = self.invoke(self._inputs.holding(values))
        fields = [result] if len(self._outputs) == 1 else [result[i] for i in range(len(self._outputs))]
        return [array_of(one) for one in fields]

    def timer(self, values: Sequence[Array]) -> Callable[[], float]:
        tensors = [self._tvm.runtime.tensor(value, self.device) for value in values]

        def run() -> None:
            self.invoke(tensors)
            self.device.sync()

        return timer_of(run, self.now)

    def now(self) -> float:
        """Seconds by this process's clock, and by the clocks of devices that are simulated in it."""
        return time.perf_counter() + self._ahead()

    def invoke(self, values: Sequence[Any]) -> Any:
        """Run on tensors that are on the device already; for timing."""
        return self._machine["main"](*values, *self._parameters)

    def watch(self, instrument: Any) -> None:
        """Call a function before and after everything the model calls, from now on."""
        self._machine.set_instrument(instrument)


def _device_clock(machine: Any) -> Callable[[], float]:
    """How far the clock of a simulated device is ahead; its code exports a function that says so."""
    try:
        found = machine.module.get_function(DEVICE_CLOCK, query_imports=True)
    except AttributeError:
        return lambda: 0.0
    return lambda: float(found())


def clock_of(model: OpenModel) -> Callable[[], float]:
    """The clock by which runs of a model are timed beside those of other programs in this process."""
    return model.now if isinstance(model, RunningModel) else time.perf_counter


class BoardModel:
    """A model on a board. Times are taken there, so that the network does not count."""

    def __init__(self, board: BoardSession, library: bytes, parameters: Sequence[Array], device: str) -> None:
        tvm = load_tvm()
        self._tensor = tvm.runtime.tensor
        self.device = board.device(device)
        self._machine = relax.VirtualMachine(board.load(library), self.device)
        self._parameters = [self._tensor(value, self.device) for value in parameters]

    def run(self, values: Sequence[Array]) -> list[Array]:
        self._give(values)
        self._machine.invoke_stateful("main")
        result = self._machine.get_outputs("main")
        return [one.numpy() for one in (result if isinstance(result, tuple) else (result,))]

    def timer(self, values: Sequence[Array]) -> Callable[[], float]:
        self._give(values)
        evaluate = self._machine.time_evaluator("invoke_stateful", self.device, number=1, repeat=1)
        return lambda: float(evaluate("main").results[0])

    def _give(self, values: Sequence[Array]) -> None:
        tensors = [self._tensor(value, self.device) for value in values]
        self._machine.set_input("main", *tensors, *self._parameters)
