"""Import the slow parts of TVM in seconds instead of half a minute.

TVM parses some hundred TVMScript functions while it imports its tensor intrinsics,
and every parse asks `inspect.stack` for the source line of every frame. Only the
frames themselves are needed at import time, so that is all they get meanwhile.
"""

import importlib
import inspect
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SLOW_MODULES = ("tvm.s_tir.tensor_intrin", "tvm.s_tir.meta_schedule", "tvm.relax")
_lock = threading.Lock()


def load_tvm() -> Any:
    """Import TVM with everything tuning needs and return the `tvm` module.

    Safe to call from any thread and any number of times; later calls cost nothing.
    """
    with _lock, frames_without_source():
        for name in _SLOW_MODULES:
            if name not in sys.modules:
                importlib.import_module(name)
        return importlib.import_module("tvm")


@contextmanager
def frames_without_source() -> Iterator[None]:
    """Let `inspect.stack` return bare frames, without looking up any source text."""
    original = inspect.stack
    inspect.stack = _bare_stack
    try:
        yield
    finally:
        inspect.stack = original


def _bare_stack(context: int = 1) -> list[inspect.FrameInfo]:
    infos: list[inspect.FrameInfo] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        infos.append(inspect.FrameInfo(frame, code.co_filename, frame.f_lineno, code.co_name, None, None))
        frame = frame.f_back
    return infos
