"""Boards on this machine, for tests: real servers in processes of their own."""

import functools
import re
import subprocess
import sys
from types import TracebackType

from tuneloom.app.conducting.calling import end_of
from tuneloom.engine.api import Engine
from tuneloom.engine.calls import Call, CallResult, Lost, Place
from tuneloom.joining import server_py
from tuneloom.model import Artifact, Board, MeasuringRules
from tuneloom.tuners.tvm.boards.session import environment_of

_PATIENCE_S = 300.0
_PROFILE = "tuneloom.tuners.tvm.measuring.profiling:profile_kernel"
_CALL = "it"


class BoardProcess:
    """A server that listens on loopback; ends with the block."""

    def __init__(self, command: list[str], key: str = "test", target: str = "cpu") -> None:
        self._command = command
        self.key = key
        self.target = target
        self.process: subprocess.Popen[str] | None = None
        self.port = 0

    @classmethod
    def scripted(cls, *facts: str) -> "BoardProcess":
        """One whose sessions do what their clients say; it needs no TVM."""
        return cls([sys.executable, "-m", "support.boards.scripted", "test", *facts])

    @classmethod
    def real(cls, target: str, port: int = 0) -> "BoardProcess":
        """One that runs TVM's code, started from one file as on a board without Tuneloom."""
        command = [sys.executable, "-c", server_py(), "--key", "test", "--port", str(port)]
        return cls(command, target=target)

    @property
    def board(self) -> Board:
        return Board(key=self.key, host="127.0.0.1", port=self.port, target=self.target)

    def __enter__(self) -> "BoardProcess":
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        assert found, "the server says where it listens"
        self.port = int(found[1])
        return self

    def kill(self) -> None:
        """End it as a power failure would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(_PATIENCE_S)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process is not None and self.process.stdout is not None
        self.process.terminate()
        self.process.wait(_PATIENCE_S)
        self.process.stdout.close()


def calling(target: str, *calls: tuple[str | int, ...]) -> bytes:
    """A kernel, built for a target, that calls functions of the C library one after another."""
    from tuneloom.backends.resolving import resolve_target
    from tuneloom.compiler.fast_import import load_tvm
    from tuneloom.tuners.tvm.lowering.payloads import pack_kernel
    from tuneloom.tuners.tvm.measuring.building import build_kernel

    tvm = load_tvm()
    values = [tvm.tirx.call_extern("float32", *call) for call in calls]
    choose = tvm.tirx.if_then_else
    called = tvm.te.compute(
        (len(calls),),
        lambda i: functools.reduce(lambda rest, n: choose(i == n, values[n], rest), range(len(calls)), 0.0),
        name="called",
    )
    kernel = tvm.te.create_prim_func([called]).with_attr("global_symbol", "main")
    built = build_kernel(pack_kernel(tvm.IRModule({"main": kernel}), resolve_target(target)))
    assert isinstance(built, Artifact)
    return built.payload


def start_profile(
    engine: Engine, board: Board, payload: bytes, limit_s: float = _PATIENCE_S, patience_s: float = 10.0
) -> None:
    """Begin to time a kernel on a board, as a run would do it: with some time to ask the board afterwards."""
    call = Call(
        function="tuneloom.tuners.tvm.boards.calls:on_board",
        arguments=(_PROFILE, limit_s, payload, MeasuringRules(min_repeat_ms=1), None),
        timeout_s=limit_s + patience_s,
        place=Place(resource=board.name, machine="local"),
        environment=environment_of(board),
    )
    engine.start(_CALL, call)


def profile_on(
    engine: Engine, board: Board, payload: bytes, limit_s: float = _PATIENCE_S, patience_s: float = 10.0
) -> CallResult | Lost:
    """What comes of timing a kernel on a board."""
    start_profile(engine, board, payload, limit_s, patience_s)
    return end_of_profile(engine)


def end_of_profile(engine: Engine) -> CallResult | Lost:
    """Wait for the end of what was begun."""
    return end_of(engine, _CALL, None)
