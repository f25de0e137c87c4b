"""Calls that workers carry out, and what comes back."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A function of the worker's world, by name, with its arguments.

    `worker` names a worker that lives on between calls and keeps state; without it
    the call gets a fresh process of its own. `cores` pins the process while it works.
    """

    function: str
    arguments: tuple[Any, ...] = field(default=(), repr=False)
    timeout_s: float | None = None
    worker: str | None = None
    cores: frozenset[int] | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """The call came back with a value."""

    value: Any = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """The call raised; `error` is its last line, `trace` the rest, for --debug."""

    error: str
    trace: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """The watchdog ended the call."""

    after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Died:
    """The process of the call is gone: a crash, or no memory."""

    reason: str


CallResult = Returned | Raised | TimedOut | Died


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """What the engine reports: which call ended how, and when (engine's clock)."""

    id: str
    result: CallResult
    started_s: float
    ended_s: float
