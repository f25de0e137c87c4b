"""Length-prefixed messages over a socket between our own processes."""

import pickle
import socket
import struct
from dataclasses import dataclass
from typing import Any

_HEADER = struct.Struct("!Q")
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A message arrived that can't be unpickled; those after it can be read all the same."""

    error: str


class Channel:
    """One end of a conversation; `receive` blocks, `received` never does.

    Messages are pickled: both ends are processes that this program started itself. What they carry may
    be a stranger's, so one that can't be unpickled is received as `Unreadable`.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._buffer = bytearray()

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, message: Any) -> None:
        """Send one message; raises OSError when the other end is gone."""
        body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self.socket.sendall(_HEADER.pack(len(body)) + body)

    def receive(self) -> Any:
        """Wait for one message; raises EOFError when the other end is gone."""
        while True:
            body = self._take()
            if body is not None:
                return _read(body)
            self._fill()

    def received(self) -> list[Any]:
        """Return the complete messages that are here after one read; raises EOFError at the end."""
        self._fill()
        messages = []
        while (body := self._take()) is not None:
            messages.append(_read(body))
        return messages

    def close(self) -> None:
        self.socket.close()

    def _fill(self) -> None:
        try:
            data = self.socket.recv(_CHUNK)
        except ConnectionError as error:
            raise EOFError(str(error)) from error
        if not data:
            raise EOFError("the other end is closed")
        self._buffer += data

    def _take(self) -> bytes | None:
        if len(self._buffer) < _HEADER.size:
            return None
        (size,) = _HEADER.unpack_from(self._buffer)
        end = _HEADER.size + size
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_HEADER.size : end])
        del self._buffer[:end]
        return body


def _read(body: bytes) -> Any:
    try:
        return pickle.loads(body)
    except Exception as error:  # whatever the constructor of a stranger's class raises
        return Unreadable(error=f"{type(error).__name__}: {error}")
