"""Boards: devices of machines on which nothing of ours runs but a server for TVM's RPC protocol."""

from tuneloom.app.devices.base import DeviceEntry, DeviceKind, DeviceState, MachineCores
from tuneloom.engine.machine import Offer
from tuneloom.model import Board, Device
from tuneloom.tuners.tvm.boards.handshake import NoAnswer, hello
from tuneloom.tuners.tvm.boards.session import environment_of
from tuneloom.tuners.tvm.boards.suitability import unsuitable

ON_BOARD = "tuneloom.tuners.tvm.boards.calls:on_board"


class RpcKind(DeviceKind):
    """One board. Calls are carried out on a machine of the farm, in a process that talks to the board."""

    fields = ("address",)
    needed = ("address", "target")
    in_machine = False
    only_runtime = True

    def takes(self, target: str) -> bool:
        return False  # boards are chosen by their keys

    def called(self, entry: DeviceEntry) -> str:
        return f"the board at {entry.address}"

    def offer(self, entry: DeviceEntry, machine: MachineCores) -> Offer:
        board = board_of(entry)
        return Offer(
            resource=Device(name=machine.named(board.name), key=board.key, machine=machine.name),
            environment=environment_of(board),
            through=ON_BOARD,
            locks=(f"board-{board.address}",),
            target=board.target,
        )

    def look(self, entry: DeviceEntry) -> DeviceState:
        board = board_of(entry)
        try:
            greeting = hello(board)
        except NoAnswer as error:
            return DeviceState(trouble=str(error))
        if trouble := unsuitable(board, greeting):
            return DeviceState(trouble=trouble)
        device = f"{greeting.machine}, {greeting.cores} cores"
        return DeviceState(facts={"device": device, "tvm": greeting.tvm})


KIND = RpcKind()


def board_of(entry: DeviceEntry) -> Board:
    """The board that an entry describes."""
    assert entry.address is not None and entry.target is not None, "the farm file was checked"
    return Board.at(entry.address, entry.key, entry.target)
