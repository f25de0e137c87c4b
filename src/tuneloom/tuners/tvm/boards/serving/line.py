"""Those who want a session: they say who they are, then wait for their turn."""

import contextlib
import hmac
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence

from tuneloom.tuners.tvm.boards.serving.callers import ACCEPTED, HELLO, OTHER_KEY, Caller

LONGEST_LINE = 16


class CallerLine:
    """Accepts clients that know the key and keeps them in the order in which they came. One thread."""

    def __init__(
        self,
        listener: socket.socket,
        poll: select.poll,
        key: str,
        facts: Callable[[], Sequence[str]],
        say: Callable[[str], None],
    ) -> None:
        self._listener, self._poll, self._key, self._facts, self._say = listener, poll, key, facts, say
        self._greeted: dict[int, Caller] = {}
        self._waiting: deque[Caller] = deque()

    def until_s(self) -> list[float]:
        """Until when those have who did not introduce themselves yet."""
        return [caller.until_s for caller in self._greeted.values()]

    def next(self) -> Caller | None:
        """Who gets the next session."""
        return self._waiting.popleft() if self._waiting else None

    def close_in_child(self) -> None:
        """A session inherits nothing of the others."""
        for caller in (*self._greeted.values(), *self._waiting):
            caller.connection.close()

    def hear(self, descriptor: int) -> None:
        """Somebody called, went on talking, or hung up."""
        if descriptor == self._listener.fileno():
            self._accept()
        elif descriptor in self._greeted:
            self._greet(self._greeted[descriptor])
        else:
            self._leave_line(descriptor)

    def give_up_overdue(self) -> None:
        """Drop who did not introduce himself in time."""
        now_s = time.monotonic()
        for caller in [one for one in self._greeted.values() if one.until_s <= now_s]:
            self.drop(caller)

    def drop(self, caller: Caller) -> None:
        """Hang up."""
        self._greeted.pop(caller.connection.fileno(), None)
        with contextlib.suppress(KeyError):
            self._poll.unregister(caller.connection)
        caller.connection.close()

    def _accept(self) -> None:
        try:
            connection, address = self._listener.accept()
        except OSError:
            return
        if len(self._greeted) + len(self._waiting) >= LONGEST_LINE:
            connection.close()
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._greeted[connection.fileno()] = Caller(connection, f"{address[0]}:{address[1]}")
        self._poll.register(connection, select.POLLIN)

    def _greet(self, caller: Caller) -> None:
        try:
            words = caller.words()
            if words is not None:
                self._introduced(caller, words)
        except (OSError, ValueError) as error:
            self._say(f"{caller.address} was sent away: {error}")
            self.drop(caller)

    def _introduced(self, caller: Caller, words: Sequence[str]) -> None:
        if not words or not hmac.compare_digest(words[0].encode(), f"client:{self._key}".encode()):
            caller.answer(OTHER_KEY)
            raise ValueError("it has another key")
        if HELLO in words:
            caller.answer(ACCEPTED, " ".join((f"server:{self._key}", *self._facts())))
            self.drop(caller)
            return
        timeouts = [float(word[9:]) for word in words if word.startswith("-timeout=")]
        caller.timeout_s = min(timeouts, default=None)
        del self._greeted[caller.connection.fileno()]
        self._poll.modify(caller.connection, select.POLLRDHUP)
        self._waiting.append(caller)

    def _leave_line(self, descriptor: int) -> None:
        for caller in [one for one in self._waiting if one.connection.fileno() == descriptor]:
            self._waiting.remove(caller)
            self.drop(caller)
