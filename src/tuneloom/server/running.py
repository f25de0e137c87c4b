"""A server as a process: it listens, and drains when asked to end."""

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from types import FrameType

import uvicorn
from fastapi import FastAPI

from tuneloom.app.runs.settings import RunSettings
from tuneloom.errors import InputError
from tuneloom.server.access.credentials import make_token
from tuneloom.server.background.executors import Executors
from tuneloom.server.building import build_app
from tuneloom.server.settings import ServerSettings
from tuneloom.server.state import ServerState
from tuneloom.store import Role, TenantLimits, open_store
from tuneloom.store.files.remote import RemoteFiles

_FIRST = "default"


def first_token(place: str | None) -> str | None:
    """A token for the administrator of a store that has no tenants yet; None if it has."""
    with open_store(place) as store:
        if store.tenants():
            return None
        store.add_tenant(_FIRST, TenantLimits(most_priority=100, shares_records=True))
        return make_token(store, _FIRST, "first", Role.ADMINISTRATOR)[1]


class DrainingServer(uvicorn.Server):
    """Ends streams as soon as it is asked to end, and leaves the signal at that.

    Uvicorn raises it again when it is done, which would end the process before its executors.
    """

    def __init__(self, config: uvicorn.Config, service: ServerState) -> None:
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
        self._service.drain()
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
        proxy_headers=bool(settings.proxies),
        forwarded_allow_ips=list(settings.proxies),
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
