"""The warm interpreter from the side of tests."""

import os
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.warm import orders
from support.warm.process import WarmProcess

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


_ROOT = Path(__file__).parents[__name__.count(".")]


class WarmInterpreter:
    """Its server starts with the first process that is asked for; `close` ends both.

    With an address, processes come from the server of another process.
    """

    def __init__(self, address: str | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._address = address
        self._server: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where the server is asked, also by other processes."""
        if self._address is None:
            self._address = str(Path(self._folder.name) / "warm")
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(self._address)
            listener.listen(64)
            threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
        return self._address

    def start(
        self, words: Sequence[str], folder: Path | str, environment: Mapping[str, str]
    ) -> "WarmProcess":
        """Start Python with these words; its output is kept for `communicate`."""
        (out, out_end), (error, error_end) = os.pipe(), os.pipe()
        with open(os.devnull) as nothing:
            given = {0: nothing.fileno(), 1: out_end, 2: error_end}
            outputs = [os.fdopen(end, "r") for end in (out, error)]
            process = WarmProcess(self.address, words, environment, folder, given, outputs)
        os.close(out_end)
        os.close(error_end)
        return process

    def write_commands(self, folder: Path) -> None:
        """Put programs `python` and `tuneloom` into a folder that a shell may find them in."""
        ask = f'exec "{sys.executable}" -I -S "{orders.__file__}" "{self.address}"'
        for name, words in (("python", ""), ("tuneloom", "-m tuneloom.cli.main")):
            path = folder / name
            path.write_text(f'#!/bin/sh\n{ask} {words} "$@"\n')
            path.chmod(0o755)

    def close(self) -> None:
        """End the server and all its processes."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None
        self._folder.cleanup()

    def _serve(self, listener: socket.socket) -> None:
        """Start the server when somebody asks; it ends with this thread, so that waits for it."""
        with listener:
            select.select([listener], [], [])
            module = f"{__package__}.server"
            places = (_ROOT, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
            self._server = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(listener.fileno()), self.address],
                pass_fds=[listener.fileno()],
                env={**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(map(str, places))},
                stdin=subprocess.DEVNULL,
            )
        self._server.wait()
