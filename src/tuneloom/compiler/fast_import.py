"""Import the slow parts of TVM in a second or two instead of half a minute.

TVM parses some hundred TVMScript functions while it imports its tensor intrinsics,
and every parse asks `inspect.stack` for the source line of every frame. Only the
frames themselves are needed at import time, so that is all they get meanwhile.
Most of those functions are for GPUs and signal processors: they are parsed when a
target needs them.
"""

import gc
import importlib
import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType, TracebackType
from typing import Any

from tuneloom.compiler.unworded import no_errors_worded
from tuneloom.compiler.vectorising import allow_in_vectors

_INTRINSICS = "tvm.s_tir.tensor_intrin"
_SLOW_MODULES = (_INTRINSICS, "tvm.s_tir.meta_schedule", "tvm.relax")
_DEFERRED = ("cuda", "rocm", "hexagon")
_lock = threading.RLock()


def load_tvm() -> Any:
    """Import TVM with everything tuning for CPUs needs and return the `tvm` module.

    Safe to call from any thread and any number of times; later calls cost nothing.
    """
    with _lock, frames_without_source(), no_errors_worded(), _intrinsics_deferred(), nothing_collected():
        for name in _SLOW_MODULES:
            if name not in sys.modules:
                importlib.import_module(name)
        tvm = importlib.import_module("tvm")
        allow_in_vectors(tvm)
        return tvm


def load_intrinsics(kind: str) -> None:
    """Make sure that the tensor intrinsics for a kind of target, such as `cuda`, are registered."""
    if kind not in _DEFERRED:
        return
    load_tvm()
    with _lock, frames_without_source():
        importlib.import_module(f"{_INTRINSICS}.{kind}")


@contextmanager
def nothing_collected() -> Iterator[None]:
    """Let Python not look for garbage: a sixth of the time where much is made and nothing dropped."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextmanager
def _intrinsics_deferred() -> Iterator[None]:
    """Let the package of intrinsics find empty modules in place of those that most programs never use.

    They are gone afterwards, so that whoever asks for one of them imports the real one. A module that
    loads itself at its first use would not do: `inspect` touches every module there is.
    """
    later = [f"{_INTRINSICS}.{kind}" for kind in _DEFERRED]
    if _INTRINSICS in sys.modules:
        later = []
    sys.modules.update({name: ModuleType(name) for name in later})
    try:
        yield
    finally:
        package = sys.modules.get(_INTRINSICS)
        for name in later:
            del sys.modules[name]
            if package is not None:
                vars(package).pop(name.rpartition(".")[2], None)


@contextmanager
def frames_without_source() -> Iterator[None]:
    """Let `inspect` describe frames without looking up any source text.

    TVM asks for whole stacks, PyTorch for the file and line of each operator that it registers.
    """
    originals = inspect.stack, inspect.getframeinfo
    inspect.stack, inspect.getframeinfo = _bare_stack, _bare_frame
    try:
        yield
    finally:
        inspect.stack, inspect.getframeinfo = originals


def _bare_frame(frame: FrameType | TracebackType, context: int = 1) -> inspect.Traceback:
    if isinstance(frame, TracebackType):
        line, code = frame.tb_lineno, frame.tb_frame.f_code
    else:
        line, code = frame.f_lineno, frame.f_code
    return inspect.Traceback(code.co_filename, line, code.co_name, None, None)


def _bare_stack(context: int = 1) -> list[inspect.FrameInfo]:
    infos: list[inspect.FrameInfo] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        infos.append(inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, None, None))
        frame = frame.f_back
    return infos
