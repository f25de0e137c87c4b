"""A server as a process: it listens, starts executors beside itself, and drains when asked to end."""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from types import FrameType

import uvicorn
from fastapi import FastAPI

from tuneloom.app.runs.settings import RunSettings
from tuneloom.errors import InputError
from tuneloom.server.building import build_app
from tuneloom.server.credentials import make_token
from tuneloom.server.service import Service
from tuneloom.server.settings import ServerSettings
from tuneloom.store import Role, TenantLimits, open_store
from tuneloom.store.files.remote import RemoteFiles
from tuneloom.store.opening import FILES

_LOG = logging.getLogger("tuneloom.server")
_FIRST = "default"
_LOOK_S = 1.0
_LEAST_PAUSE_S, _MOST_PAUSE_S, _LONG_S = 0.5, 60.0, 120.0
_WAIT_S = 90.0  # stages that run come to their end first


def first_token(place: str | None) -> str | None:
    """A token for the administrator of a store that has no tenants yet; None if it has."""
    store = open_store(place)
    try:
        if store.tenants():
            return None
        store.add_tenant(_FIRST, TenantLimits(most_priority=100, shares_records=True))
        return make_token(store, _FIRST, "first", Role.ADMINISTRATOR)[1]
    finally:
        store.close()


@dataclass(slots=True)
class Pauses:
    """How long to wait before a process is started again: longer each time, unless one lived for long."""

    pause_s: float = _LEAST_PAUSE_S
    ended_s: dict[int, float] = field(default_factory=dict)
    started_s: float = 0.0

    def over(self, pid: int, now_s: float) -> bool:
        """Whether the one that was found dead may be replaced now."""
        if pid not in self.ended_s:
            lived = now_s - self.started_s > _LONG_S
            self.pause_s = _LEAST_PAUSE_S if lived else min(2 * self.pause_s, _MOST_PAUSE_S)
            self.ended_s[pid] = now_s
        if now_s - self.ended_s[pid] < self.pause_s:
            return False
        del self.ended_s[pid]
        self.started_s = now_s
        return True


@dataclass(slots=True)
class Executors:
    """Executors as processes of their own: one that dies takes nothing with it, and is started again."""

    settings: ServerSettings
    _processes: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    _pauses: "Pauses" = field(default_factory=lambda: Pauses())
    _ending: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> "Executors":
        self._processes = [self._started() for _ in range(self.settings.executors)]
        if self._processes:
            threading.Thread(target=self._watch, name="executors", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(_WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _watch(self) -> None:
        while not self._ending.wait(_LOOK_S):
            for number, process in enumerate(self._processes):
                code = process.poll()
                if code is None or self._ending.is_set():
                    continue
                if self._pauses.over(process.pid, time.monotonic()):
                    _LOG.error("an executor ended with code %s; another is started", code)
                    self._processes[number] = self._started()

    def _started(self) -> "subprocess.Popen[bytes]":
        settings = self.settings
        words = [
            sys.executable,
            "-m",
            "tuneloom.cli.main",
            "executor",
            "--attached",
            "--policy",
            settings.policy,
        ]
        words += ["--device-cores", str(settings.device_cores)]
        if settings.store is not None:
            words += ["--store", settings.store]
        if settings.farm is not None:
            words += ["--farm", settings.farm]
        # A signal for the terminal's group should reach the server alone: it ends them in order. When
        # the server is killed, the pipe closes, and they end by themselves.
        return subprocess.Popen(words, stdin=subprocess.PIPE, process_group=0, env=self._variables())

    def _variables(self) -> dict[str, str]:
        files = self.settings.files
        return dict(os.environ) | ({FILES: files} if files is not None else {})


class DrainingServer(uvicorn.Server):
    """Ends streams as soon as it is asked to end, and leaves the signal at that.

    Uvicorn raises it again when it is done, which would end the process before its executors.
    """

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ask the server to end on SIGTERM and Ctrl-C, for the time of the block."""
        old = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.draining = True
        super().handle_exit(sig, frame)


def serve(settings: ServerSettings, told: Callable[[str], None] = lambda _address: None) -> None:
    """Serve until SIGTERM or Ctrl-C; then streams end, executors drain, and this returns.

    `told` hears the address once it is listened on and nothing can be refused any more; port 0 means any
    that is free. Raises InputError if the address can't be used, or a file that the settings name.
    """
    RunSettings(farm=settings.farm).read_farm()
    if settings.files is not None:
        RemoteFiles(settings.files)
    app = build_app(settings)
    configuration = _configuration(app, settings)
    server = DrainingServer(configuration, app.state.service)
    with closing(_listener(configuration, settings)) as listener:
        told(_address(listener, settings))
        with Executors(settings):
            server.run(sockets=[listener])


def _listener(configuration: uvicorn.Config, settings: ServerSettings) -> socket.socket:
    host, port = settings.host, settings.port
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.create_server(address[:2], family=family)
    except OSError as error:
        words = f"can't listen on {host}:{port}: {error.strerror}; choose another --host or --port"
        raise InputError(words, field="port") from error
    # Connections inherit it. Without it the body of an answer waits until its headers are acknowledged,
    # which a client puts off by 40 ms; asyncio sets it only for sockets that were made with a protocol.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.listen(configuration.backlog)  # whoever hears the address may call at once
    return listener


def _address(listener: socket.socket, settings: ServerSettings) -> str:
    scheme = "https" if settings.certificate else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return f"{scheme}://{host}:{listener.getsockname()[1]}"


def _configuration(app: FastAPI, settings: ServerSettings) -> uvicorn.Config:
    configuration = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.private_key,
        access_log=False,
        log_level="warning",
        server_header=False,
        h11_max_incomplete_event_size=16384,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=10,
        limit_concurrency=1000,
    )
    try:
        configuration.load()
    except OSError as error:  # of TLS, too
        words = f"can't use {settings.certificate} and {settings.private_key} for TLS: {error.strerror}"
        raise InputError(words, field="certificate") from error
    return configuration
