"""A fork of the warm interpreter, handled like a process of `subprocess`."""

import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

from support.warm.orders import receive_number, send_order


class WarmProcess:
    """The part of `subprocess.Popen` that programs and tests use, with text for output."""

    def __init__(
        self,
        address: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | str,
        given: Mapping[int, int],
        outputs: Sequence[TextIO] = (),
    ) -> None:
        self.args = list(words)
        self.returncode: int | None = None
        self.stdout: TextIO | None = None
        self.stderr: TextIO | None = None
        if outputs:
            self.stdout, self.stderr = outputs
        self._connection = send_order(address, self.args, dict(environment), str(folder), dict(given))
        self.pid = receive_number(self._connection)

    def poll(self) -> int | None:
        """The exit code, if the process has ended."""
        if self.returncode is None and self._heard_within(0.0):
            self._end()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended; raises TimeoutExpired if it does not in time."""
        if self.returncode is None:
            if not self._heard_within(timeout):
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self._end()
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """All output, once the process has ended."""
        end_s = None if timeout is None else time.monotonic() + timeout
        texts = self._all_output(end_s)
        self.wait(_left(end_s))
        return texts

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the process at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def _all_output(self, end_s: float | None) -> tuple[str, str]:
        if self.stdout is None or self.stderr is None:
            return "", ""
        texts: dict[int, list[bytes]] = {}
        with selectors.DefaultSelector() as selector:
            for stream in (self.stdout, self.stderr):
                texts[stream.fileno()] = []
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                for key, _ in self._ready(selector, end_s):
                    texts[key.fd].append(os.read(key.fd, 1 << 16))
                    if not texts[key.fd][-1]:
                        selector.unregister(key.fileobj)
        out, error = (b"".join(texts[stream.fileno()]).decode() for stream in (self.stdout, self.stderr))
        self.stdout.close()
        self.stderr.close()
        self.stdout = self.stderr = None
        return out, error

    def _ready(
        self, selector: selectors.BaseSelector, end_s: float | None
    ) -> list[tuple[selectors.SelectorKey, int]]:
        ready = selector.select(_left(end_s))
        if not ready and end_s is not None and time.monotonic() >= end_s:
            raise subprocess.TimeoutExpired(self.args, 0.0)
        return ready

    def _heard_within(self, timeout: float | None) -> bool:
        return bool(select.select([self._connection], [], [], timeout)[0])

    def _end(self) -> None:
        self.returncode = os.waitstatus_to_exitcode(receive_number(self._connection))
        self._connection.close()


def _left(end_s: float | None) -> float | None:
    return None if end_s is None else max(0.0, end_s - time.monotonic())
