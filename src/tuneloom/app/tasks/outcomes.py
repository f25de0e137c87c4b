"""How the end of a call becomes the outcome of a trial."""

from typing import Any, assert_never

from tuneloom.engine.calls import CallResult, Died, Raised, Returned, TimedOut
from tuneloom.model import Failure, FailureKind

_OWN_FAULT = ("SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL", "SIGBUS", "exit code")


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
            own = any(sign in result.reason for sign in _OWN_FAULT)
            return Failure(kind=error if own else FailureKind.WORKER_LOST, message=result.reason)
        case _:
            assert_never(result)
