"""Boards: devices of machines on which nothing of ours runs but a server for TVM's RPC protocol."""

from tuneloom.app.farm.entries import DeviceEntry
from tuneloom.app.farm.kinds.base import Ground, Sight
from tuneloom.engine.machine import Offer
from tuneloom.model import Board, Device
from tuneloom.tuners.tvm.boards.handshake import NoAnswer, hello
from tuneloom.tuners.tvm.boards.session import environment_of
from tuneloom.tuners.tvm.boards.suitability import unsuitable

ON_BOARD = "tuneloom.tuners.tvm.boards.calls:on_board"


class RpcKind:
    """One board. Calls are carried out on a machine of the farm, in a process that talks to the board."""

    def offer(self, entry: DeviceEntry, ground: Ground) -> Offer:
        board = board_of(entry)
        return Offer(
            resource=Device(name=ground.named(board.name), key=board.key, machine=ground.machine),
            environment=environment_of(board),
            through=ON_BOARD,
        )

    def look(self, entry: DeviceEntry) -> Sight:
        board = board_of(entry)
        try:
            greeting = hello(board)
        except NoAnswer as error:
            return Sight(trouble=str(error))
        if trouble := unsuitable(board, greeting):
            return Sight(trouble=trouble)
        device = f"{greeting.machine}, {greeting.cores} cores"
        return Sight(facts={"device": device, "tvm": greeting.tvm})


def board_of(entry: DeviceEntry) -> Board:
    """The board that an entry describes."""
    assert entry.address is not None and entry.target is not None, "the farm file was checked"
    return Board.at(entry.address, entry.key, entry.target)
