"""Gives sessions to clients, one after the other, and outlives them whatever becomes of them."""

import contextlib
import os
import select
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Sequence

from tuneloom.tuners.tvm.boards.serving.callers import ACCEPTED, LONGEST_KEY, Caller
from tuneloom.tuners.tvm.boards.serving.line import CallerLine
from tuneloom.tuners.tvm.boards.serving.sessions import ServedSession, become_session

_PARTING_S = 2.0


class BoardServer:
    """Accepts clients that know the key; one has a session at a time, the others wait. One thread.

    `serve` runs in the child of a fork and gets the client's connection and a folder of its own.
    """

    def __init__(
        self,
        listener: socket.socket,
        key: str,
        facts: Sequence[str],
        serve: Callable[[socket.socket, str], None],
        say: Callable[[str], None] = print,
    ) -> None:
        self._listener = listener
        self._key = key
        self._facts = tuple(facts)
        self._serve = serve
        self._say = say
        self._session: ServedSession | None = None
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
        self._line = CallerLine(listener, self._poll, key, self._facts_now, say)
        self._bell, self._ring = socket.socketpair()
        self._ended = False

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        for one in (self._bell, self._ring, self._listener):
            one.setblocking(False)
        self._poll.register(self._bell, select.POLLIN)
        signal.set_wakeup_fd(self._ring.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        while not self._ended:
            for descriptor, _ in self._poll.poll(self._patience_ms()):
                self._hear(descriptor)
            self._line.give_up_overdue()
            self._give_up_overdue()
            self._reap()
            self._begin_next()
        self._close()

    def _end(self, *_: object) -> None:
        self._ended = True

    def _close(self) -> None:
        if self._session is not None:
            self._session.kill()
            os.waitpid(self._session.pid, 0)
            self._session.clean()
        self._listener.close()

    def _facts_now(self) -> Sequence[str]:
        return (*self._facts, f"-busy={'yes' if self._session is not None else 'no'}")

    def _patience_ms(self) -> float | None:
        limits = self._line.until_s()
        if self._session is not None and self._session.until_s is not None:
            limits.append(self._session.until_s)
        return max(0.0, 1e3 * (min(limits) - time.monotonic())) + 1 if limits else None

    def _hear(self, descriptor: int) -> None:
        if descriptor == self._bell.fileno():
            self._bell.recv(LONGEST_KEY)
        elif self._session is not None and descriptor == self._session.caller.connection.fileno():
            self._hung_up(self._session)
        else:
            self._line.hear(descriptor)

    def _hung_up(self, session: ServedSession) -> None:
        """Its client is gone: it may say goodbye to its device, but not for long."""
        self._poll.unregister(session.caller.connection)
        parting_s = time.monotonic() + _PARTING_S
        session.until_s = parting_s if session.until_s is None else min(session.until_s, parting_s)

    def _give_up_overdue(self) -> None:
        session = self._session
        if session is not None and session.until_s is not None and session.until_s <= time.monotonic():
            self._say(f"the session of {session.caller.address} is ended: it hung or took too long")
            session.until_s = None
            session.kill()

    def _reap(self) -> None:
        session = self._session
        if session is None:
            return
        pid, status = os.waitpid(session.pid, os.WNOHANG)
        if not pid:
            return
        self._session = None
        with contextlib.suppress(KeyError):
            self._poll.unregister(session.caller.connection)
        session.clean()
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) != signal.SIGKILL:
            self._say(f"the session of {session.caller.address} crashed (signal {os.WTERMSIG(status)})")

    def _begin_next(self) -> None:
        while self._session is None and (caller := self._line.next()) is not None:
            try:
                caller.answer(ACCEPTED, f"server:{self._key}")
                self._session = self._start(caller)
            except OSError as error:
                self._say(f"{caller.address} got no session: {error}")
                self._line.drop(caller)

    def _start(self, caller: Caller) -> ServedSession:
        folder = tempfile.mkdtemp(prefix="board-")
        pid = os.fork()
        if pid:
            return ServedSession(caller, pid, folder)
        code = 1
        try:
            become_session()
            self._listener.close()
            self._line.close_in_child()
            self._serve(caller.connection, folder)
            code = 0
        finally:
            os._exit(code)
