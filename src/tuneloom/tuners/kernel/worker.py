"""A warm process that builds or profiles one candidate after the other.

Requests come on standard input, answers go to the file descriptor named by the first
argument, each as a length and a pickle. What the kernel prints goes to standard
output, which the owner drains. A lone process of this kind serves one owner.
"""

import os
import pickle
import struct
import sys
from typing import Any, BinaryIO

import cloudpickle

from tuneloom.tuners.kernel.stages import build, profile

_LENGTH = struct.Struct(">Q")


def send(stream: BinaryIO, value: Any) -> None:
    """Write one value."""
    data = cloudpickle.dumps(value)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: BinaryIO) -> Any:
    """Read one value; raises EOFError when the other side is gone."""
    head = _exactly(stream, _LENGTH.size)
    return pickle.loads(_exactly(stream, _LENGTH.unpack(head)[0]))


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = stream.read(count - len(data))
        if not part:
            raise EOFError("the other side closed")
        data += part
    return data


def main() -> None:
    """Serve until standard input ends."""
    requests = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    answers = os.fdopen(int(sys.argv[1]), "wb")
    send(answers, "ready")
    while True:
        try:
            stage, arguments = receive(requests)
        except EOFError:
            return
        send(answers, build(*arguments) if stage == "build" else profile(*arguments))


if __name__ == "__main__":
    main()
