"""What a client says before it gets a session, in TVM's protocol."""

import socket
import struct
import time

MAGIC = 0xFF271
ACCEPTED, OTHER_KEY = MAGIC, MAGIC + 2
HELLO = "-hello"
"""An option of a client that wants to know who is there and no session."""
LONGEST_KEY = 4096
GREETING_S = 10.0
_NUMBER = struct.Struct("<i")


class Caller:
    """A connection that has not said yet what it wants, or waits for its turn."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        self.connection = connection
        self.address = address
        self.until_s = time.monotonic() + GREETING_S
        self.timeout_s: float | None = None
        self._heard = bytearray()

    def words(self) -> list[str] | None:
        """Read on; the words of its key when they are complete.

        Raises OSError if it is gone or talks rubbish.
        """
        data = self.connection.recv(LONGEST_KEY)
        if not data:
            raise OSError("it hung up")
        self._heard += data
        if len(self._heard) < 2 * _NUMBER.size:
            return None
        (magic,), (size,) = _NUMBER.unpack_from(self._heard), _NUMBER.unpack_from(self._heard, _NUMBER.size)
        if magic != MAGIC or not 0 < size <= LONGEST_KEY:
            raise OSError("it does not speak TVM's protocol")
        key = self._heard[2 * _NUMBER.size :]
        return key.decode("utf-8", "replace").split() if len(key) >= size else None

    def answer(self, code: int, key: str = "") -> None:
        """Accept it, or send it away; raises OSError if it is gone."""
        body = key.encode()
        self.connection.setblocking(True)
        self.connection.settimeout(GREETING_S)
        self.connection.sendall(_NUMBER.pack(code) + (_NUMBER.pack(len(body)) + body if body else b""))
        self.connection.settimeout(None)
