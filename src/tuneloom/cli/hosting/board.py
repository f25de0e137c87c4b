"""`tuneloom board`: lend this machine to a farm as a device."""

import argparse

from tuneloom.cli.parsing import Commands, add_command

DESCRIPTION = """\
Serve this machine as a board: candidates that are built elsewhere are measured here, over TVM's RPC
protocol. A candidate that crashes or hangs ends its own session; the server keeps running.

  tuneloom board serve --key cortex-a72 --host 0.0.0.0
  tuneloom board file > server.py         (the same server for boards that have only TVM)

Whoever reaches the port can run code here. Without --host, only this machine can reach it; let others
in through an SSH tunnel or in a trusted network.
"""


def add_parser(subparsers: Commands) -> None:
    """Add the commands to the program."""
    from tuneloom.tuners.tvm.boards.serving.command import add_arguments

    parser = add_command(subparsers, "board", DESCRIPTION)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    words = "serve this machine as a board until SIGTERM or Ctrl-C"
    add_arguments(add_command(commands, "serve", f"S{words[1:]}.", serve, help=words))
    words = "print the server as one file that needs only TVM"
    add_command(commands, "file", f"{words.capitalize()}'s runtime.", print_file, help=words)


def serve(options: argparse.Namespace) -> int:
    """Serve this machine."""
    from tuneloom.errors import InputError
    from tuneloom.tuners.tvm.boards.serving.command import serve_board
    from tuneloom.tuners.tvm.boards.serving.with_tvm import NotServed

    try:
        serve_board(options.host, options.port, options.key)
    except NotServed as error:
        raise InputError(str(error)) from error
    return 0


def print_file(_options: argparse.Namespace) -> int:
    """Print the server's source."""
    from tuneloom.joining import server_py

    print(server_py(), end="")
    return 0
