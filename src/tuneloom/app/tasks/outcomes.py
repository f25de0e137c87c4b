"""How the end of a call becomes the outcome of a trial."""

import signal
from typing import Any, assert_never

from tuneloom.engine.calls import (
    CallResult,
    DeathCause,
    Died,
    ExitedWith,
    KilledBy,
    OutOfMemory,
    Raised,
    Returned,
    TimedOut,
)
from tuneloom.model import Failure, FailureKind

_CRASHES = frozenset(
    (signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGILL, signal.SIGBUS, signal.SIGTRAP)
)
"""Signals that a process brings on itself."""


def built(result: CallResult) -> Any:
    """The artifact of a build, or why there is none."""
    return _outcome(result, FailureKind.BUILD_ERROR, FailureKind.BUILD_TIMEOUT)


def profiled(result: CallResult) -> Any:
    """The measurement of a profile, or why there is none."""
    return _outcome(result, FailureKind.RUN_ERROR, FailureKind.RUN_TIMEOUT)


def _outcome(result: CallResult, error: FailureKind, timeout: FailureKind) -> Any:
    match result:
        case Returned():
            return result.value
        case Raised():
            return Failure(kind=error, message=result.error)
        case TimedOut():
            return Failure(kind=timeout, message=f"ended after {result.after_s:g} s")
        case Died():
            kind = error if _own_fault(result.cause) else FailureKind.WORKER_LOST
            return Failure(kind=kind, message=str(result))
        case _:
            assert_never(result)


def _own_fault(cause: DeathCause) -> bool:
    """Whether a candidate brought its process down; who is killed for lack of memory may be a bystander."""
    match cause:
        case KilledBy():
            return cause.number in _CRASHES
        case OutOfMemory():
            return False
        case ExitedWith():
            return True
        case _:
            assert_never(cause)
