"""The session of a process with the board that it holds."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from itertools import count
from typing import Any

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.errors import reason_of
from tuneloom.model.resource import Board
from tuneloom.tuners.tvm.boards.handshake import NoAnswer, free

_BOARD = "TUNELOOM_BOARD"
_NO_LIMIT_S = 3600.0
_BIG_CORES = 1


def environment_of(board: Board) -> dict[str, str]:
    """The variables that tell a process which board it holds."""
    return {_BOARD: json.dumps(asdict(board))}


def held_board(environment: Mapping[str, str] = os.environ) -> Board | None:
    """The board that this process holds, if it holds one."""
    text = environment.get(_BOARD)
    return Board(**json.loads(text)) if text else None


class BoardSession:
    """A connection to a board, which has no other meanwhile; used by one thread.

    The board ends it after `limit_s`, should this process be unable to. Raises NoAnswer if the board
    can't be reached or has another session.
    """

    def __init__(self, board: Board, limit_s: float | None = None) -> None:
        load_tvm()
        from tvm import rpc

        self.board = board
        self.life = free(board).life
        try:
            self._session = rpc.connect(
                board.host, board.port, board.key, session_timeout=limit_s or _NO_LIMIT_S
            )
            self._use_cores()
        except Exception as error:
            raise NoAnswer(f"no session with {board.address}: {reason_of(error)}") from error
        self._names = (f"module{number}.so" for number in count())

    def device(self, kind: str) -> Any:
        """The board's device of a kind, `cpu` or `cuda`."""
        return self._session.device(kind)

    def load(self, library: bytes) -> Any:
        """A module on the board."""
        name = next(self._names)
        self._session.upload(bytearray(library), name)
        return self._session.load_module(name)

    def alive(self) -> bool:
        """Whether the connection still works: a candidate that crashes there takes it along."""
        try:
            self._session.get_function("runtime.NumThreads")()
        except Exception:
            return False
        return True

    def _use_cores(self) -> None:
        target = self.board.target
        cores = int(json.loads(target).get("num-cores", 1)) if target.startswith("{") else 1
        self._session.get_function("runtime.config_threadpool")(_BIG_CORES, cores)
