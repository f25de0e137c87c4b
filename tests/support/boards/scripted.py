"""A board without TVM, as a program: what a session does is said by the first letter of its client.

`e` echoes, `c` crashes, `h` hangs, `f` leaves a file in the session's folder and tells its path.
"""

import os
import signal
import socket
import sys
from pathlib import Path

from tuneloom.tuners.tvm.boards.serving.command import listening
from tuneloom.tuners.tvm.boards.serving.server import BoardServer


def session(connection: socket.socket, folder: str) -> None:
    """Do what the client says, until it leaves."""
    while letter := connection.recv(1):
        match letter:
            case b"e":
                connection.sendall(b"e")
            case b"c":
                os.kill(os.getpid(), signal.SIGSEGV)
            case b"h":
                signal.pause()
            case b"f":
                path = Path(folder) / "kept"
                path.write_text("it")
                connection.sendall(str(path).encode())


def main() -> None:
    """Serve with the key and the words of the greeting that are given as arguments."""
    listener = listening("127.0.0.1", 0)
    print(f"serves on 127.0.0.1:{listener.getsockname()[1]}", flush=True)
    BoardServer(listener, sys.argv[1], sys.argv[2:], session, lambda _line: None).run()


if __name__ == "__main__":
    main()
