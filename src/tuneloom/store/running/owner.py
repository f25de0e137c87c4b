"""Which process owns a run, and whether that process still lives."""

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process, told apart from later ones of the same number by its start.

    Its number means something only in its process namespace, during one uptime of its machine.
    """

    host: str
    boot: str
    pid_namespace: str
    pid: int
    pid_started: str


def this_process() -> Owner:
    """The calling process as an owner."""
    return Owner(
        host=socket.gethostname(),
        boot=boot_id(),
        pid_namespace=pid_namespace(),
        pid=os.getpid(),
        pid_started=start_of(os.getpid()),
    )


def is_alive(owner: Owner) -> bool | None:
    """Whether the owner lives; None if that can't be known, since its process can't be seen from here.

    Containers and machines may share a hostname, so a hostname alone says nothing.
    """
    if (owner.host, owner.boot, owner.pid_namespace) != (socket.gethostname(), boot_id(), pid_namespace()):
        return None
    return bool(owner.pid_started) and start_of(owner.pid) == owner.pid_started


@cache
def boot_id() -> str:
    """Names the present uptime of this machine."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else f"{psutil.boot_time():.0f}"


@cache
def pid_namespace() -> str:
    """Names the set of processes that this one can see; empty where there is but one."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


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
