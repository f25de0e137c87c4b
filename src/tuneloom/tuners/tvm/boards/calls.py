"""Calls whose device is a board: the process here only talks to it.

When something goes wrong, the board is asked before anybody is blamed. A candidate that crashes or
hangs there ends its session and no more; if the board itself is silent or was started anew, the call
returns DeviceGone, and is carried out again when there is a board.
"""

import importlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tuneloom.errors import EngineError
from tuneloom.model.resource import Board, DeviceGone
from tuneloom.tuners.tvm.boards.bench import on
from tuneloom.tuners.tvm.boards.handshake import NoAnswer, still_there
from tuneloom.tuners.tvm.boards.session import BoardSession, held_board

_LATER_S = 15.0


def on_board(function: str, limit_s: float | None, *arguments: Any) -> Any:
    """The value of `package.module:function`, which runs its code on the board that this process holds.

    Raises what it raises. One that takes longer than `limit_s` on a board that is well does not
    return any more: whoever called has to end this process.
    """
    board = held_board()
    if board is None:
        raise EngineError("this call needs a board, but none was given to its process; report this")
    try:
        session = BoardSession(board, None if limit_s is None else limit_s + _LATER_S)
    except NoAnswer as error:
        return DeviceGone(reason=str(error))
    work = _Work(_found(function), arguments, session)
    thread = threading.Thread(target=work.do, daemon=True)
    thread.start()
    thread.join(limit_s)
    if thread.is_alive() or not work.well:
        gone = _why_gone(board, session.life)
        if gone:
            return DeviceGone(reason=gone)
        thread.join()
    if work.error is not None:
        raise work.error
    return work.value


@dataclass(slots=True)
class _Work:
    """One call in a thread of its own, since a board that is cut off never answers."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    session: BoardSession
    value: Any = None
    error: BaseException | None = None
    well: bool = False

    def do(self) -> None:
        try:
            with on(self.session):
                self.value = self.function(*self.arguments)
        except BaseException as error:
            self.error = error
        self.well = self.session.alive()


def _why_gone(board: Board, life: str) -> str:
    """Why a board can't be asked any more; empty if it is the same as before."""
    try:
        now = still_there(board)
    except NoAnswer as error:
        return str(error)
    return "" if now.life == life else f"the server of {board.address} was started anew"


def _found(function: str) -> Callable[..., Any]:
    module, _, name = function.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return found
