"""Which process owns a run, and whether that process still lives."""

import socket
from dataclasses import dataclass
from functools import cache
from os import getpid
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process, told apart from later ones of the same number by its start."""

    host: str
    boot: str
    pid: int
    pid_started: str


def this_process() -> Owner:
    """The calling process as an owner."""
    return Owner(host=socket.gethostname(), boot=boot_id(), pid=getpid(), pid_started=start_of(getpid()))


def is_alive(owner: Owner) -> bool | None:
    """Whether the owner lives; None if it is on another host and can't be asked."""
    if owner.host != socket.gethostname():
        return None
    return owner.boot == boot_id() and bool(owner.pid_started) and start_of(owner.pid) == owner.pid_started


@cache
def boot_id() -> str:
    """Names the present uptime of this machine."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else f"{psutil.boot_time():.0f}"


def start_of(pid: int) -> str:
    """When a living process started, as text; empty if there is none of this number."""
    return _start_in_ticks(pid) if Path("/proc/self/stat").exists() else _start_in_seconds(pid)


def _start_in_ticks(pid: int) -> str:
    # Ticks since boot, unlike a time of day, do not move when somebody sets the clock.
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    after_name = line[line.rindex(")") + 2 :].split()
    return "" if after_name[0] in "ZX" else after_name[19]


def _start_in_seconds(pid: int) -> str:
    try:
        process = psutil.Process(pid)
        return "" if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.Error:
        return ""
