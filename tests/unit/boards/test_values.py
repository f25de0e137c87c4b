"""What is said of boards before one is asked anything: addresses, triples, linkers, suitability."""

import json
import platform
from importlib.metadata import version

import pytest

from support.boards.local import BoardProcess
from support.ports import reserved_port
from tuneloom.app.devices.base import DeviceEntry, MachineCores
from tuneloom.app.devices.describing import device_kind
from tuneloom.compiler import linking
from tuneloom.compiler.linking import linker_of, machine_of, require_linker, triple_of
from tuneloom.errors import TargetError
from tuneloom.model import Board
from tuneloom.tuners.tvm.boards.handshake import Greeting
from tuneloom.tuners.tvm.boards.session import environment_of, held_board
from tuneloom.tuners.tvm.boards.suitability import unsuitable

ARM = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"}
X86 = {"kind": "llvm", "mtriple": "x86_64-unknown-linux-gnu"}


def board(target: dict[str, str]) -> Board:
    return Board.at("board-3:9090", "a72", json.dumps(target))


def test_an_address_becomes_a_board_with_a_name_of_its_own() -> None:
    one = board(ARM)
    assert (one.host, one.port, one.name) == ("board-3", 9090, "a72@board-3:9090")
    six = Board.at("[::1]:9090", "a72", "cpu")
    assert (six.host, six.address) == ("::1", "[::1]:9090")


@pytest.mark.parametrize("address", ["board", "board:", ":9090", "board:70000", "board:x"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(TargetError, match="write it as host:port"):
        Board.at(address, "a72", "cpu")


def test_a_process_learns_from_its_environment_which_board_it_holds() -> None:
    assert held_board(environment_of(board(ARM))) == board(ARM)
    assert held_board({}) is None


def test_the_triple_says_which_machine_and_which_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    assert (machine_of(ARM), linker_of(ARM)) == ("aarch64", "aarch64-linux-gnu-ld")
    assert (machine_of(X86), linker_of(X86)) == ("x86_64", "ld")
    assert (machine_of({"kind": "llvm"}), linker_of({"kind": "llvm"})) == ("x86_64", "ld")
    old = {"kind": "llvm", "mtriple": "armv7l-linux-gnueabihf"}
    assert (machine_of(old), linker_of(old)) == ("arm", "arm-linux-gnueabihf-ld")
    jetson = {"kind": "cuda", "host": ARM}
    assert (triple_of(jetson), linker_of(jetson)) == ("aarch64-linux-gnu", "aarch64-linux-gnu-ld")


def test_a_missing_linker_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(linking.shutil, "which", lambda _name: None)
    with pytest.raises(TargetError, match=r"aarch64-linux-gnu-ld .* apt install binutils-aarch64-linux-gnu$"):
        require_linker(ARM)
    with pytest.raises(TargetError, match=r"x86_64-linux-gnu-ld .* apt install binutils-x86-64-linux-gnu$"):
        require_linker(X86)
    with pytest.raises(TargetError, match=r"linker ld for riscv64 is not installed; apt install binutils$"):
        require_linker({"kind": "llvm"})


def test_other_systems_than_linux_are_refused() -> None:
    with pytest.raises(TargetError, match="code for arm64-apple-darwin can't be linked"):
        require_linker({"kind": "llvm", "mtriple": "arm64-apple-darwin"})


def test_a_board_of_another_architecture_is_unsuitable() -> None:
    found = unsuitable(board(ARM), Greeting(machine="x86_64", tvm=version("apache-tvm")))
    assert "the board at board-3:9090 is x86_64, but its target is for aarch64" in found


def test_a_board_with_another_tvm_is_unsuitable_and_both_versions_are_named() -> None:
    ours = version("apache-tvm")
    found = unsuitable(board(ARM), Greeting(machine="aarch64", tvm="0.1"))
    assert f"has TVM 0.1, this machine has {ours}; pip install apache-tvm=={ours} there" in found


def test_a_board_that_is_what_its_target_says_is_suitable() -> None:
    assert unsuitable(board(ARM), Greeting(machine="aarch64", tvm=version("apache-tvm"))) == ""


def test_the_server_of_tvm_is_unsuitable_and_the_remedy_is_named() -> None:
    assert "is TVM's own" in unsuitable(board(ARM), Greeting())
    assert "tuneloom board file" in unsuitable(board(ARM), Greeting())


GROUND = MachineCores(name="local", host_cores=frozenset({0}), device_cores=frozenset())


def entry_of(one: Board) -> DeviceEntry:
    return DeviceEntry(key=one.key, kind="rpc", address=one.address, target=one.target)


def test_a_board_is_offered_through_a_function_that_finds_it_in_its_environment() -> None:
    offer = device_kind("rpc").offer(entry_of(board(ARM)), GROUND)
    assert (offer.resource.name, offer.resource.machine) == ("a72@board-3:9090", "local")
    assert offer.through == "tuneloom.tuners.tvm.boards.calls:on_board"
    assert held_board(offer.environment) == board(ARM)


def test_a_look_at_a_board_tells_what_it_is_or_why_it_is_of_no_use() -> None:
    kind = device_kind("rpc")
    with BoardProcess.scripted(f"-machine={platform.machine()}", f"-tvm={version('apache-tvm')}") as here:
        state = kind.look(entry_of(here.board))
        assert state.usable and platform.machine() in state.facts["device"]
    with reserved_port() as port:
        absent = Board(key="test", host="127.0.0.1", port=port, target="cpu")
        assert "Connection refused" in kind.look(entry_of(absent)).trouble
    with BoardProcess.scripted("-machine=m68k") as other:
        assert "is m68k, but its target is for" in kind.look(entry_of(other.board)).trouble
    with BoardProcess.scripted() as stock:
        assert "is TVM's own" in kind.look(entry_of(stock.board)).trouble
