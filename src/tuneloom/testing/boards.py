"""Boards on this machine, for tests: real servers in processes of their own."""

import re
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from tuneloom.model import Board
from tuneloom.tuners.tvm.boards import server

_PATIENCE_S = 60.0


class BoardProcess:
    """A server that listens on loopback; ends with the block."""

    def __init__(self, words: list[str], key: str = "test", target: str = "cpu") -> None:
        self._words = words
        self.key = key
        self.target = target
        self.process: subprocess.Popen[str] | None = None
        self.port = 0

    @classmethod
    def scripted(cls, *facts: str) -> "BoardProcess":
        """One whose sessions do what their clients say; it needs no TVM."""
        return cls(["-m", "tuneloom.testing.scripted_board", "test", *facts])

    @classmethod
    def real(cls, target: str, port: int = 0) -> "BoardProcess":
        """One that runs TVM's code, started from its file as on a board without Tuneloom."""
        words = [str(Path(server.__file__)), "--key", "test", "--port", str(port)]
        return cls(words, target=target)

    @property
    def board(self) -> Board:
        return Board(key=self.key, host="127.0.0.1", port=self.port, target=self.target)

    def __enter__(self) -> "BoardProcess":
        self.process = subprocess.Popen(
            [sys.executable, *self._words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdout is not None
        found = re.search(r"127\.0\.0\.1:(\d+)", self.process.stdout.readline())
        assert found, "the server says where it listens"
        self.port = int(found[1])
        return self

    def kill(self) -> None:
        """End it as a power failure would."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(_PATIENCE_S)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process is not None and self.process.stdout is not None
        self.process.terminate()
        self.process.wait(_PATIENCE_S)
        self.process.stdout.close()
