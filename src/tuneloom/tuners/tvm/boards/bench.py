"""Where code is run and timed: in this process, or on the board that it holds."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.threads import use_own_cores
from tuneloom.tuners.tvm.boards.session import BoardSession

_MEMORY_FOLDER = Path("/dev/shm")


class Bench(Protocol):
    """Takes libraries and has the device to run them on."""

    def device(self, kind: str) -> Any:
        """The device of a kind, `cpu` or `cuda`."""

    def load(self, library: bytes) -> Any:
        """A module from the bytes of a shared object."""


class OwnBench:
    """This process."""

    def device(self, kind: str) -> Any:
        use_own_cores()
        return load_tvm().device(kind)

    def load(self, library: bytes) -> Any:
        """The file that it needs on the way does not stay."""
        folder = _MEMORY_FOLDER if _MEMORY_FOLDER.is_dir() else None
        with tempfile.NamedTemporaryFile(suffix=".so", dir=folder) as file:
            file.write(library)
            file.flush()
            return load_tvm().runtime.load_module(file.name)


_sessions: list[BoardSession] = []


def bench() -> Bench:
    """Where this process runs code now."""
    return _sessions[-1] if _sessions else OwnBench()


def board_session() -> BoardSession | None:
    """The session with a board, while code is run on one."""
    return _sessions[-1] if _sessions else None


@contextmanager
def on(session: BoardSession) -> Iterator[None]:
    """Run code on a board meanwhile."""
    _sessions.append(session)
    try:
        yield
    finally:
        _sessions.remove(session)
