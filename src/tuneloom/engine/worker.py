"""What runs inside a worker process: receive a call, carry it out, send the result."""

import ctypes
import importlib
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from tuneloom.engine.calls import Call, CallResult, Raised, Returned
from tuneloom.engine.channel import Channel

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def serve(channel: Channel) -> None:
    """Carry out calls until the other end closes; the first limit of memory that a call brings stays."""
    limited = False
    while True:
        try:
            call: Call = channel.receive()
        except EOFError:
            return
        if call.memory_bytes and not limited:
            limited = True
            limit_memory(call.memory_bytes)
        result = carry_out(call)
        try:
            channel.send(result)
        except OSError:
            return


def carry_out(call: Call) -> CallResult:
    """Run one call in this process; whatever it raises becomes a value."""
    if call.cores is not None:
        os.sched_setaffinity(0, call.cores)
    os.environ.update(call.environment)
    try:
        return Returned(value=resolve(call.function)(*call.arguments))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        last = traceback.format_exception_only(error)[-1].strip()
        return Raised(error=last, trace=traceback.format_exc())


def resolve(name: str) -> Callable[..., Any]:
    """Find `package.module:function`."""
    module, _, attribute = name.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    return function


def limit_memory(more_bytes: int) -> None:
    """Let this process map at most that much more than it has mapped already."""
    with open("/proc/self/statm") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    limit = mapped + more_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def silence() -> None:
    """Send what a candidate prints to nowhere."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)
