"""Timing short kernels as models run them: many launches recorded in one CUDA graph.

Launching a kernel takes about 4 microseconds of the CPU, more than many kernels take: launched one by one,
all of these would look the same.
"""

import ctypes
import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from tuneloom.errors import TargetError

LAUNCHES = 20
"""How many launches are recorded in a graph."""
SHORT_S = 50e-6
"""A kernel that takes longer is timed launch by launch: the GPU is still busy when the next one comes."""

_NON_BLOCKING = 1
_OF_THIS_THREAD = 1


class Stopwatch:
    """Times one call on the GPU of this process; `run` launches it on the stream that TVM uses."""

    def __init__(self, run: Callable[[], Any], device: Any) -> None:
        self._run, self._device = run, device
        self._stream = ctypes.c_void_p()
        _do("cuStreamCreate", ctypes.byref(self._stream), _NON_BLOCKING)
        weakref.finalize(self, _driver().cuStreamDestroy_v2, self._stream)
        self._events = [ctypes.c_void_p(), ctypes.c_void_p()]
        for event in self._events:
            _do("cuEventCreate", ctypes.byref(event), 0)
            weakref.finalize(self, _driver().cuEventDestroy_v2, event)
        self._graph: ctypes.c_void_p | None = None
        self._long: bool | None = None

    def __call__(self, number: int, repeats: int) -> tuple[float, ...]:
        """Seconds per run, once for each repeat; the first call makes runs that do not count."""
        from tvm_ffi import use_raw_stream

        with use_raw_stream(self._device, self._stream.value or 0):
            if self._long is None:
                self._begin()
            if self._graph is None:
                return tuple(self._seconds(self._run, number) / number for _ in range(repeats))
            replays = -(-number // LAUNCHES)
            replay = self._replay
            return tuple(self._seconds(replay, replays) / (replays * LAUNCHES) for _ in range(repeats))

    def _begin(self) -> None:
        self._seconds(self._run, 1)  # loads its code
        self._long = self._seconds(self._run, 1) > SHORT_S
        if not self._long:
            with suppress(RuntimeError):  # what can't be recorded is launched one by one
                self._graph = self._recorded()
                self._seconds(self._replay, 1)

    def _recorded(self) -> ctypes.c_void_p:
        graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
        _do("cuStreamBeginCapture_v2", self._stream, _OF_THIS_THREAD)
        try:
            for _ in range(LAUNCHES):
                self._run()
        finally:
            _do("cuStreamEndCapture", self._stream, ctypes.byref(graph))
        _do("cuGraphInstantiateWithFlags", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        _do("cuGraphDestroy", graph)
        weakref.finalize(self, _driver().cuGraphExecDestroy, ready)
        return ready

    def _replay(self) -> None:
        _do("cuGraphLaunch", self._graph, self._stream)

    def _seconds(self, run: Callable[[], Any], number: int) -> float:
        before, after = self._events
        _do("cuEventRecord", before, self._stream)
        for _ in range(number):
            run()
        _do("cuEventRecord", after, self._stream)
        _do("cuEventSynchronize", after)
        took = ctypes.c_float()
        _do("cuEventElapsedTime", ctypes.byref(took), before, after)
        return max(took.value, 1e-6) / 1e3


def _do(function: str, *arguments: Any) -> None:
    """Call the driver; raises RuntimeError with its words."""
    status = getattr(_driver(), function)(*arguments)
    if status:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError(f"{function}: {(text.value or b'unknown error').decode()}")


@cache
def _driver() -> Any:
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise TargetError("there is no CUDA driver here; install NVIDIA's driver") from error
