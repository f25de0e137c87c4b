"""A kernel that was timed leaves its memory at once: the processes that own GPUs time thousands."""

import gc
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tuneloom.tuners.tvm.measuring import profiling
from tuneloom.tuners.tvm.measuring.artifacts import BuiltKernel


class HoldingBackend:
    """A backend whose stopwatch holds what it calls, as one for graphs has to."""

    steady = True

    def stopwatch(self, run: Callable[[], Any], device: object) -> Callable[[int, int], tuple[float, ...]]:
        return lambda number, repeats: (run(), (1.0,) * repeats)[1]


@pytest.fixture
def no_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def test_a_timed_kernel_is_freed_without_a_collection(
    monkeypatch: pytest.MonkeyPatch, no_collection: None
) -> None:
    ran: list[tuple[Any, ...]] = []
    module = {"main": lambda *arguments: ran.append(arguments)}
    place = SimpleNamespace(device=lambda _kind: None, load=lambda _library: module)
    tvm = SimpleNamespace(runtime=SimpleNamespace(tensor=lambda value, _device: value))
    monkeypatch.setattr(profiling, "load_tvm", lambda: tvm)
    monkeypatch.setattr(profiling, "bench", lambda: place)
    monkeypatch.setattr(profiling, "backend_for", lambda _device: HoldingBackend())
    kernel = profiling.LoadedKernel(BuiltKernel(device="odd", arguments=(("float32", (2,)),), library=b""))
    assert kernel.time(number=1, repeats=2) == (1.0, 1.0) and len(ran) == 1
    left = weakref.ref(kernel)
    del kernel
    assert left() is None
