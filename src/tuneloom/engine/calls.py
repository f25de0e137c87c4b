"""Calls that workers carry out, and what comes back."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tuneloom.model.pickling import quickly_pickled


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a call is carried out: the resource that was granted to it, and the machine that has it."""

    resource: str
    machine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFiles:
    """Files that calls read: their folder on the machine of the run, and digests by name within it."""

    folder: str
    digests: Mapping[str, str]


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function of the worker's world, by name, with its arguments.

    `worker` names a worker that lives on between calls and keeps state; without it
    the call gets a fresh process of its own. If it belongs to a `group`, whose calls leave nothing
    behind that matters, the process may have served others of that group, and served them well.
    A worker lives on one machine: the same name on another machine is another worker. `cores` pins
    the process while it works; if it has to be `alone` there, what else works on them pauses. A call that
    is `spread` uses the cores of its machine's hosts besides those of its device, beside others. It begins
    once it has its `locks`, which other processes of the machine may hold, too: alone, or beside others.
    `environment` is set in the process before: variables that say which device to use. `place` says
    where; an engine of one machine needs none. An engine of several machines brings the files that
    it `reads` to the machine that carries it out, and what it `writes` into a folder back; paths
    among the arguments, and those that are the `source` of an argument, are adapted.
    """

    function: str
    arguments: tuple[Any, ...] = field(default=(), repr=False)
    timeout_s: float | None = None
    worker: str | None = None
    group: str | None = None
    cores: frozenset[int] | None = None
    alone: bool = False
    spread: bool = False
    locks: tuple[str, ...] = ()
    memory_bytes: int | None = None
    place: Place | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    reads: ReadFiles | None = None
    writes: str | None = None

    @property
    def shares_with(self) -> str | None:
        """The group whose processes may serve it; none for a named worker, or if it is told its device."""
        return None if self.worker is not None or self.environment else self.group


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """The call came back with a value."""

    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """The call raised; `error` is its last line, `trace` the rest, for --debug."""

    error: str
    trace: str = field(repr=False)

    def __str__(self) -> str:
        return self.error


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """The watchdog ended the call."""

    after_s: float

    def __str__(self) -> str:
        return f"it did not end within {self.after_s:g} s"


@dataclass(frozen=True, slots=True)
class KilledBy:
    """A signal ended a process."""

    number: int

    def __str__(self) -> str:
        try:
            return f"killed by {signal.Signals(self.number).name}"
        except ValueError:  # real-time signals have no name
            return f"killed by signal {self.number}"


@dataclass(frozen=True, slots=True)
class ExitedWith:
    """A process ended by itself."""

    code: int

    def __str__(self) -> str:
        return f"ended with exit code {self.code}"


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The kernel killed a process because its machine had no memory left."""

    def __str__(self) -> str:
        return "killed because the machine ran out of memory"


DeathCause = KilledBy | ExitedWith | OutOfMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """The process ended while it carried this very call out."""

    cause: DeathCause

    def __str__(self) -> str:
        return str(self.cause)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The call got lost with its machine, or with a worker that ended before its turn came.

    That says nothing about the call: it should be carried out again. What its named worker
    kept, if it had one, is gone.
    """

    reason: str

    def __str__(self) -> str:
        return self.reason


CallResult = Returned | Raised | TimedOut | Died
"""How a call ended that was carried out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWaits:
    """A call waits for a device that another process of its machine uses; its time has not begun yet."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallBegan:
    """A call that had to wait has its device since `at_s`, after `waited_s` (engine's clock)."""

    id: str
    at_s: float
    waited_s: float


@quickly_pickled
@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """Which call ended how, and when (engine's clock)."""

    id: str
    result: CallResult | Lost
    started_s: float
    ended_s: float
