"""The server of a board outlives its sessions, whatever becomes of them."""

import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.boards.local import BoardProcess
from tuneloom.model import Board
from tuneloom.tuners.tvm.boards import handshake
from tuneloom.tuners.tvm.boards.handshake import Greeting, NoAnswer, free, hello
from tuneloom.tuners.tvm.boards.serving.callers import ACCEPTED, MAGIC, OTHER_KEY
from tuneloom.tuners.tvm.boards.serving.command import listening, serve_board
from tuneloom.tuners.tvm.boards.serving.with_tvm import NotServed

PATIENCE_S = 300.0


@pytest.fixture(scope="module")
def board() -> Iterator[Board]:
    with BoardProcess.scripted("-machine=m68k", "-tvm=1.2", "-cores=3", "-flags=fpu,bcd", "-life=x") as one:
        yield one.board


class Client:
    """A client of TVM's protocol, as far as it is needed to get a session."""

    def __init__(self, board: Board, key: str) -> None:
        self.socket = socket.create_connection((board.host, board.port), timeout=PATIENCE_S)
        words = key.encode()
        self.socket.sendall(struct.pack("<ii", MAGIC, len(words)) + words)

    def code(self) -> int:
        return int(struct.unpack("<i", self.exactly(4))[0])

    def begin(self) -> "Client":
        """Wait for the session."""
        assert self.code() == ACCEPTED
        assert self.exactly(self.code()) == b"server:test"
        return self

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                break
            data += more
        return data

    def say(self, letter: bytes) -> bytes:
        """The answer; nothing if the session ends, or has ended already."""
        try:
            self.socket.sendall(letter)
            return self.socket.recv(4096)
        except (BrokenPipeError, ConnectionResetError):
            return b""

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def session(board: Board, options: str = "") -> Client:
    return Client(board, f"client:test{options}")


def test_a_session_is_served(board: Board) -> None:
    with session(board).begin() as client:
        assert client.say(b"e") == b"e"


def test_a_session_that_crashes_ends_its_connection_and_the_next_is_served(board: Board) -> None:
    with session(board).begin() as client:
        assert client.say(b"c") == b""
    with session(board).begin() as client:
        assert client.say(b"e") == b"e"


def test_a_session_that_hangs_ends_when_its_client_leaves(board: Board) -> None:
    with session(board).begin() as client:
        client.socket.sendall(b"h")
    with session(board).begin() as client:
        assert client.say(b"e") == b"e"


def test_a_session_that_hangs_ends_after_the_time_that_its_client_gave(board: Board) -> None:
    with session(board, " -timeout=0.2").begin() as client:
        assert client.say(b"h") == b""


def test_who_comes_second_waits_for_his_turn(board: Board) -> None:
    with session(board).begin() as first, session(board) as second:
        assert first.say(b"e") == b"e"
        first.socket.close()
        assert second.begin().say(b"e") == b"e"


def test_a_client_that_gives_up_waiting_is_forgotten(board: Board) -> None:
    with session(board).begin() as first:
        session(board).socket.close()
        assert first.say(b"e") == b"e"
    with session(board).begin() as client:
        assert client.say(b"e") == b"e"


def test_what_a_session_wrote_is_gone_with_it(board: Board) -> None:
    with session(board).begin() as client:
        path = Path(client.say(b"f").decode())
        assert path.read_text() == "it"
        assert client.say(b"c") == b""
    with session(board).begin():  # whoever is served after it finds nothing
        assert not path.parent.exists()


def test_another_key_is_sent_away(board: Board) -> None:
    with Client(board, "client:other") as client:
        assert (client.code(), client.exactly(1)) == (OTHER_KEY, b"")


def test_what_does_not_speak_the_protocol_is_sent_away(board: Board) -> None:
    with socket.create_connection((board.host, board.port), timeout=PATIENCE_S) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert connection.recv(1) == b""


def test_a_board_says_what_it_is_even_while_it_is_busy(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"machine": "m68k", "tvm": "1.2", "cores": 3, "flags": ("fpu", "bcd"), "life": "x"}
    assert free(board, PATIENCE_S) == Greeting(**known)  # type: ignore[arg-type]
    with session(board).begin():
        assert hello(board, PATIENCE_S) == Greeting(**known, busy=True)  # type: ignore[arg-type]
        monkeypatch.setattr(handshake, "_PAUSE_S", 2 * PATIENCE_S)  # there is no time for a second question
        with pytest.raises(NoAnswer, match=r"another program uses the board at 127\.0\.0\.1:\d+"):
            free(board, PATIENCE_S)


def test_a_client_is_told_that_its_key_is_another(board: Board) -> None:
    with pytest.raises(NoAnswer, match="has another key than 'wrong'"):
        hello(Board(key="wrong", host=board.host, port=board.port, target="cpu"), PATIENCE_S)


def test_an_address_where_nobody_listens_is_named() -> None:
    with socket.socket() as bound:  # and not listening: nobody else gets its port
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        with pytest.raises(NoAnswer, match=rf"no answer from 127\.0\.0\.1:{port}: Connection refused"):
            hello(Board(key="k", host="127.0.0.1", port=port, target="cpu"), PATIENCE_S)


def test_a_board_that_accepts_and_says_nothing_is_given_up() -> None:
    with listening("127.0.0.1", 0) as silent:
        address = silent.getsockname()
        with pytest.raises(NoAnswer, match=r"no answer from .* within 0.1 s"):
            hello(Board(key="k", host=address[0], port=address[1], target="cpu"), 0.1)


def test_a_port_that_is_taken_is_refused_in_one_line() -> None:
    with (
        listening("127.0.0.1", 0) as taken,
        pytest.raises(NotServed, match="choose another --host or --port"),
    ):
        listening("127.0.0.1", taken.getsockname()[1])


def test_a_key_of_two_words_is_refused() -> None:
    with pytest.raises(NotServed, match="a key is one word, got 'a b'"):
        serve_board("127.0.0.1", 0, "a b")
