"""Whether a board is what its target says, as far as its greeting tells; imports no TVM."""

import json
from importlib.metadata import version

from tuneloom.compiler.linking import machine_of
from tuneloom.model.resource import Board
from tuneloom.tuners.tvm.boards.handshake import Greeting

_TVM = "apache-tvm"


def unsuitable(board: Board, greeting: Greeting) -> str:
    """Why code for the board's target can't run there; empty if nothing speaks against it."""
    if not greeting.machine:
        return (
            f"the server at {board.address} is TVM's own, which stops answering after the first crash; "
            "start `tuneloom board serve` there, or the file that `tuneloom board file` prints"
        )
    wanted = machine_of(json.loads(board.target)) if board.target.startswith("{") else machine_of({})
    if greeting.machine and greeting.machine != wanted:
        return (
            f"the board at {board.address} is {greeting.machine}, but its target is for {wanted}; "
            "give another mtriple or address"
        )
    ours = version(_TVM)
    if greeting.tvm and greeting.tvm != ours:
        return (
            f"the board at {board.address} has TVM {greeting.tvm}, this machine has {ours}; "
            f"pip install {_TVM}=={ours} there"
        )
    return ""
