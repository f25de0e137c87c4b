"""Serves this machine as a board over TVM's RPC protocol, each session in a process of its own.

Needs Python and TVM's runtime, nothing of Tuneloom: copy this file to a board and start it there
with `python server.py --key KEY`. A session that crashes, hangs or eats memory ends with its
process; TVM's own server stops answering after the first crash.

Whoever reaches the port can run code: listen on loopback, in a trusted network or behind a tunnel.
"""

import argparse
import contextlib
import ctypes
import hmac
import os
import platform
import secrets
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

MAGIC = 0xFF271
ACCEPTED, OTHER_KEY = MAGIC, MAGIC + 2
HELLO = "-hello"
"""An option of a client that wants to know who is there and no session."""

DEFAULT_PORT = 9090
_NUMBER = struct.Struct("<i")
_LONGEST_KEY = 4096
_GREETING_S = 10.0
_PARTING_S = 2.0
_LINE = 16
_PR_SET_PDEATHSIG = 1


class NotServed(Exception):  # noqa: N818 - the name is the message
    """The server can't start; the text says why and what to do."""


class Caller:
    """A connection that has not said yet what it wants, or waits for its turn."""

    def __init__(self, connection: socket.socket, address: str) -> None:
        self.connection = connection
        self.address = address
        self.until_s = time.monotonic() + _GREETING_S
        self.timeout_s: float | None = None
        self._heard = bytearray()

    def words(self) -> list[str] | None:
        """Read on; the words of its key when they are complete.

        Raises OSError if it is gone or talks rubbish.
        """
        data = self.connection.recv(_LONGEST_KEY)
        if not data:
            raise OSError("it hung up")
        self._heard += data
        if len(self._heard) < 2 * _NUMBER.size:
            return None
        (magic,), (size,) = _NUMBER.unpack_from(self._heard), _NUMBER.unpack_from(self._heard, _NUMBER.size)
        if magic != MAGIC or not 0 < size <= _LONGEST_KEY:
            raise OSError("it does not speak TVM's protocol")
        key = self._heard[2 * _NUMBER.size :]
        return key.decode("utf-8", "replace").split() if len(key) >= size else None

    def answer(self, code: int, key: str = "") -> None:
        """Accept it, or send it away; raises OSError if it is gone."""
        body = key.encode()
        self.connection.setblocking(True)
        self.connection.settimeout(_GREETING_S)
        self.connection.sendall(_NUMBER.pack(code) + (_NUMBER.pack(len(body)) + body if body else b""))
        self.connection.settimeout(None)


class ServedSession:
    """A process that serves one client, and what has to be cleaned up after it."""

    def __init__(self, caller: Caller, pid: int, folder: str) -> None:
        self.caller = caller
        self.pid = pid
        self.folder = folder
        self.until_s = None if caller.timeout_s is None else time.monotonic() + caller.timeout_s

    def kill(self) -> None:
        """End it with all it started."""
        for end in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                end(self.pid, signal.SIGKILL)

    def clean(self) -> None:
        """Leave nothing behind once its process is gone."""
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        self.caller.connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)


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
        self._greeted: dict[int, Caller] = {}
        self._waiting: deque[Caller] = deque()
        self._session: ServedSession | None = None
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)
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

    def _patience_ms(self) -> float | None:
        limits = [caller.until_s for caller in self._greeted.values()]
        if self._session is not None and self._session.until_s is not None:
            limits.append(self._session.until_s)
        return max(0.0, 1e3 * (min(limits) - time.monotonic())) + 1 if limits else None

    def _hear(self, descriptor: int) -> None:
        if descriptor == self._bell.fileno():
            self._bell.recv(_LONGEST_KEY)
        elif descriptor == self._listener.fileno():
            self._accept()
        elif descriptor in self._greeted:
            self._greet(self._greeted[descriptor])
        elif self._session is not None and descriptor == self._session.caller.connection.fileno():
            self._hung_up(self._session)
        else:
            self._leave_line(descriptor)

    def _accept(self) -> None:
        try:
            connection, address = self._listener.accept()
        except OSError:
            return
        if len(self._greeted) + len(self._waiting) >= _LINE:
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
            self._drop(caller)

    def _introduced(self, caller: Caller, words: Sequence[str]) -> None:
        if not words or not hmac.compare_digest(words[0].encode(), f"client:{self._key}".encode()):
            caller.answer(OTHER_KEY)
            raise ValueError("it has another key")
        if HELLO in words:
            busy = "yes" if self._session is not None else "no"
            caller.answer(ACCEPTED, " ".join((f"server:{self._key}", *self._facts, f"-busy={busy}")))
            self._drop(caller)
            return
        timeouts = [float(word[9:]) for word in words if word.startswith("-timeout=")]
        caller.timeout_s = min(timeouts, default=None)
        del self._greeted[caller.connection.fileno()]
        self._poll.modify(caller.connection, select.POLLRDHUP)
        self._waiting.append(caller)

    def _drop(self, caller: Caller) -> None:
        self._greeted.pop(caller.connection.fileno(), None)
        with contextlib.suppress(KeyError):
            self._poll.unregister(caller.connection)
        caller.connection.close()

    def _leave_line(self, descriptor: int) -> None:
        for caller in [one for one in self._waiting if one.connection.fileno() == descriptor]:
            self._waiting.remove(caller)
            self._drop(caller)

    def _hung_up(self, session: ServedSession) -> None:
        """Its client is gone: it may say goodbye to its device, but not for long."""
        self._poll.unregister(session.caller.connection)
        parting_s = time.monotonic() + _PARTING_S
        session.until_s = parting_s if session.until_s is None else min(session.until_s, parting_s)

    def _give_up_overdue(self) -> None:
        now_s = time.monotonic()
        for caller in [one for one in self._greeted.values() if one.until_s <= now_s]:
            self._drop(caller)
        session = self._session
        if session is not None and session.until_s is not None and session.until_s <= now_s:
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
        while self._session is None and self._waiting:
            caller = self._waiting.popleft()
            try:
                caller.answer(ACCEPTED, f"server:{self._key}")
                self._session = self._start(caller)
            except OSError as error:
                self._say(f"{caller.address} got no session: {error}")
                self._drop(caller)

    def _start(self, caller: Caller) -> ServedSession:
        folder = tempfile.mkdtemp(prefix="board-")
        pid = os.fork()
        if pid:
            return ServedSession(caller, pid, folder)
        code = 1
        try:
            self._become_session()
            self._serve(caller.connection, folder)
            code = 0
        finally:
            os._exit(code)

    def _become_session(self) -> None:
        """In the child: nothing of the parent's but the connection, and gone when the parent is."""
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        self._listener.close()
        for caller in (*self._greeted.values(), *self._waiting):
            caller.connection.close()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000")


def serve_tvm(connection: socket.socket, folder: str) -> None:
    """One session of TVM's RPC; files that the client uploads live in the folder."""
    import tvm
    import tvm_ffi

    def within(name: str) -> str:
        return str(Path(folder) / Path(name).name)

    os.chdir(folder)
    tvm_ffi.register_global_func("tvm.rpc.server.workpath", within, override=True)
    tvm_ffi.register_global_func(
        "tvm.rpc.server.load_module", lambda name: tvm.runtime.load_module(within(name)), override=True
    )
    tvm_ffi.get_global_func("rpc.ServerLoop")(connection.fileno())


def tvm_facts() -> list[str]:
    """What a client should know of this board, as words of a greeting. Imports TVM, once for all sessions."""
    os.environ.setdefault("TVM_USE_RUNTIME_LIB", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        import tvm
        import tvm.rpc
    except ImportError as error:
        raise NotServed(f"TVM is not installed here ({error}); pip install apache-tvm") from error
    facts = {
        "machine": platform.machine(),
        "tvm": tvm.__version__,
        "cores": os.cpu_count() or 1,
        "life": secrets.token_hex(8),
    }
    return [f"-{name}={value}" for name, value in facts.items()] + [f"-flags={','.join(cpu_flags())}"]


def cpu_flags() -> list[str]:
    """What the kernel says this CPU can do; nothing where it does not say, as under an emulator."""
    row = "Features" if platform.machine().startswith(("aarch64", "arm")) else "flags"
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return []
    rows = (line.partition(":") for line in lines)
    return next((value.split() for key, _, value in rows if key.strip() == row), [])


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; raises Refused if the address can't be used."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with contextlib.ExitStack() as failing:
            listener = failing.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_LINE)
            failing.pop_all()
    except OSError as error:
        raise NotServed(
            f"can't listen on {host}:{port}: {error.strerror}; choose another --host or --port"
        ) from error
    return listener


def serve_board(host: str, port: int, key: str) -> None:
    """Serve until SIGTERM or Ctrl-C; says where on the first line of standard output."""
    if not key or key.split() != [key]:
        raise NotServed(f"a key is one word, got {key!r}")
    listener = listening(host, port)
    facts = tvm_facts()
    at, bound = listener.getsockname()[:2]
    print(f"board {key!r} serves on {at}:{bound} ({facts[0][9:]}, TVM {facts[1][5:]})", flush=True)
    if not at.startswith("127.") and at != "::1":
        print("whoever reaches this address can run code here; keep it in a trusted network", flush=True)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    BoardServer(listener, key, facts, serve_tvm, say).run()


def port_number(text: str) -> int:
    """A port from a command line; argparse says what is wrong with it. Sockets would take it modulo 65536."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5) or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"must be a port from 0 to 65535, got {text[:20]!r}")
    return int(text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options, the same with and without Tuneloom."""
    parser.add_argument("--key", required=True, help="the board's key in the farm file")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument(
        "--port",
        type=port_number,
        default=DEFAULT_PORT,
        help=f"port to listen on (default: {DEFAULT_PORT}; 0: any that is free)",
    )


def main() -> int:
    """The file as a program."""
    parser = argparse.ArgumentParser(description="Serve this machine as a board to Tuneloom.")
    add_arguments(parser)
    options = parser.parse_args()
    try:
        serve_board(options.host, options.port, options.key)
    except NotServed as error:
        print(f"server.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
