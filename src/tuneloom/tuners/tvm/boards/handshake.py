"""Asking a board who it is: the greeting of TVM's RPC protocol over a plain socket.

It takes no session, so that a board answers at once even while it is busy. TVM's own server takes the
question for a session: it answers when it is free, and tells nothing of itself, by which it is recognised.
"""

import socket
import struct
import time
from dataclasses import dataclass

from tuneloom.model.resource import Board
from tuneloom.tuners.tvm.boards.serving.callers import ACCEPTED, HELLO, MAGIC, OTHER_KEY

PATIENCE_S = 5.0
_PAUSE_S = 0.25
_NUMBER = struct.Struct("<i")
_LONGEST = 1 << 16


class NoAnswer(Exception):  # noqa: N818 - the name is the message
    """A board can't be used now; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """What a board says of itself; TVM's own server says nothing. `life` changes when it is started anew."""

    machine: str = ""
    tvm: str = ""
    cores: int = 0
    flags: tuple[str, ...] = ()
    life: str = ""
    busy: bool = False


def hello(board: Board, patience_s: float = PATIENCE_S) -> Greeting:
    """Ask once, waiting up to so many seconds; raises NoAnswer."""
    until_s = time.monotonic() + patience_s
    try:
        with socket.create_connection((board.host, board.port), timeout=patience_s) as connection:
            connection.settimeout(max(0.01, until_s - time.monotonic()))
            return _greeted(connection, board)
    except TimeoutError as error:
        raise NoAnswer(f"no answer from {board.address} within {patience_s:g} s") from error
    except OSError as error:
        raise NoAnswer(f"no answer from {board.address}: {error.strerror or error}") from error


def still_there(board: Board, patience_s: float = PATIENCE_S) -> Greeting:
    """Ask until it answers, for up to so many seconds: a server may be just starting. Raises NoAnswer."""
    until_s = time.monotonic() + patience_s
    while True:
        try:
            return hello(board, max(_PAUSE_S, until_s - time.monotonic()))
        except NoAnswer as silent:
            if time.monotonic() + _PAUSE_S > until_s:
                raise NoAnswer(f"{silent} (tried for {patience_s:g} s)") from silent
        time.sleep(_PAUSE_S)


def free(board: Board, patience_s: float = PATIENCE_S) -> Greeting:
    """Ask until nobody else has a session there, for up to so many seconds; raises NoAnswer."""
    until_s = time.monotonic() + patience_s
    while (greeting := hello(board, patience_s)).busy:
        if time.monotonic() + _PAUSE_S > until_s:
            raise NoAnswer(f"another program uses the board at {board.address} (waited for {patience_s:g} s)")
        time.sleep(_PAUSE_S)
    return greeting


def _greeted(connection: socket.socket, board: Board) -> Greeting:
    question = f"client:{board.key} {HELLO}".encode()
    connection.sendall(_NUMBER.pack(MAGIC) + _NUMBER.pack(len(question)) + question)
    (code,) = _NUMBER.unpack(_received(connection, _NUMBER.size))
    if code == OTHER_KEY:
        raise NoAnswer(f"the board at {board.address} has another key than {board.key!r}")
    if code != ACCEPTED:
        raise NoAnswer(f"what listens at {board.address} is not a board; start `tuneloom board serve` there")
    (size,) = _NUMBER.unpack(_received(connection, _NUMBER.size))
    if not 0 <= size <= _LONGEST:
        raise NoAnswer(f"what listens at {board.address} is not a board; start `tuneloom board serve` there")
    return _read(_received(connection, size).decode("utf-8", "replace").split()[1:])


def _read(words: list[str]) -> Greeting:
    facts = dict(word[1:].partition("=")[::2] for word in words if word.startswith("-"))
    cores = facts.get("cores", "")
    return Greeting(
        machine=facts.get("machine", ""),
        tvm=facts.get("tvm", ""),
        cores=int(cores) if cores.isdecimal() else 0,
        flags=tuple(flag for flag in facts.get("flags", "").split(",") if flag),
        life=facts.get("life", ""),
        busy=facts.get("busy") == "yes",
    )


def _received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise NoAnswer("it hung up in the middle of its greeting")
        data += more
    return data
