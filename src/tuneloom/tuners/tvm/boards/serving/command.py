"""Serving from a command line, the same with and without Tuneloom."""

import argparse
import contextlib
import socket
import sys

from tuneloom.tuners.tvm.boards.serving.line import LONGEST_LINE
from tuneloom.tuners.tvm.boards.serving.server import BoardServer
from tuneloom.tuners.tvm.boards.serving.with_tvm import NotServed, serve_tvm, tvm_facts

DEFAULT_PORT = 9090


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; raises NotServed if the address can't be used."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with contextlib.ExitStack() as failing:
            listener = failing.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(LONGEST_LINE)
            failing.pop_all()
    except OSError as error:
        raise NotServed(
            f"can't listen on {host}:{port}: {error.strerror}; choose another --host or --port"
        ) from error
    return listener


def serve_board(host: str, port: int, key: str) -> None:
    """Serve until SIGTERM or Ctrl-C; says where on the first line of standard output."""
    if not key or key.split() != [key]:
        raise NotServed(f"a key is one word, got {key!r}")
    listener = listening(host, port)
    facts = tvm_facts()
    at, bound = listener.getsockname()[:2]
    print(f"board {key!r} serves on {at}:{bound} ({facts[0][9:]}, TVM {facts[1][5:]})", flush=True)
    if not at.startswith("127.") and at != "::1":
        print("whoever reaches this address can run code here; keep it in a trusted network", flush=True)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    BoardServer(listener, key, facts, serve_tvm, say).run()


def port_number(text: str) -> int:
    """A port from a command line; argparse says what is wrong with it. Sockets would take it modulo 65536."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535, got {text[:20]!r}")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options, the same with and without Tuneloom."""
    parser.add_argument("--key", required=True, help="the board's key in the farm file")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port",
        type=port_number,
        default=DEFAULT_PORT,
        help=f"port to listen on (default: {DEFAULT_PORT}; 0: any free one)",
    )


def main() -> int:
    """The file as a program."""
    parser = argparse.ArgumentParser(description="Serve this machine as a board to Tuneloom.")
    add_arguments(parser)
    options = parser.parse_args()
    try:
        serve_board(options.host, options.port, options.key)
    except NotServed as error:
        print(f"server.py: {error}", file=sys.stderr)
        return 2
    return 0
