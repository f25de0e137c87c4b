"""What a warm interpreter is asked for, and the small program that asks from a shell.

This file imports the standard library alone and can be run as a script: that takes no longer than
Python itself.
"""

import array
import json
import os
import socket
import struct
import sys
from typing import Any

_SIZE = struct.Struct("!I")
NUMBER = struct.Struct("!q")
"""What comes back: the number of the new process at once, its exit status as os.waitpid has it later."""
_MOST_DESCRIPTORS = 16


def send_order(
    address: str, words: list[str], environment: dict[str, str], folder: str, given: dict[int, int]
) -> socket.socket:
    """Ask for a process; `given` says which descriptor it gets under which number."""
    order = {"words": words, "environment": environment, "folder": folder, "numbers": list(given)}
    text = json.dumps(order).encode()
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    descriptors = array.array("i", given.values())
    connection.sendmsg([_SIZE.pack(len(text))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
    connection.sendall(text)
    return connection


def receive_order(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """An order, and the descriptors that came with it in the order of its numbers."""
    size, descriptors, _, _ = socket.recv_fds(connection, _SIZE.size, _MOST_DESCRIPTORS)
    text = connection.recv(_SIZE.unpack(size)[0], socket.MSG_WAITALL)
    return json.loads(text), descriptors


def receive_number(connection: socket.socket) -> int:
    """The next answer; raises EOFError when the interpreter is gone."""
    data = connection.recv(NUMBER.size, socket.MSG_WAITALL)
    if len(data) < NUMBER.size:
        raise EOFError("the warm interpreter is gone")
    number: int = NUMBER.unpack(data)[0]
    return number


def main() -> int:
    """Be the program that the words name: same output, same exit code."""
    address, *words = sys.argv[1:]
    given = {number: number for number in (0, 1, 2)}
    connection = send_order(address, words, dict(os.environ), os.getcwd(), given)
    receive_number(connection)
    return os.waitstatus_to_exitcode(receive_number(connection)) & 0xFF


if __name__ == "__main__":
    sys.exit(main())
