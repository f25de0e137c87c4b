"""What runs inside a worker process: receive a call, carry it out, send the result."""

import ctypes
import importlib
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tuneloom.engine.calls import Call, CallResult, Raised, Returned
from tuneloom.engine.channel import Channel
from tuneloom.engine.sharing.locks import holding
from tuneloom.errors import EngineError

_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel to end this process when its parent ends (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A worker waits for the locks of its call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """A worker that had to wait has the locks of its call since `at_s`."""

    at_s: float
    waited_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call came to, and from when to when it had its locks."""

    result: CallResult
    began_s: float
    ended_s: float


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
        try:
            _send(channel, _answer(call, channel))
        except OSError:
            return


def _send(channel: Channel, answer: Answer) -> None:
    try:
        channel.send(answer)
    except OSError:
        raise
    except Exception as error:  # nothing was sent yet: it can't be pickled
        raised = Raised(error=f"its result can't be sent: {error}", trace=traceback.format_exc())
        channel.send(replace(answer, result=raised))


def _answer(call: Call, channel: Channel) -> Answer:
    """Carry out a call once nobody else holds its locks."""
    asked_s = began_s = time.monotonic()
    waited: list[Waiting] = []

    def wait() -> None:
        waited.append(Waiting())
        channel.send(waited[0])

    try:
        with holding(call.locks, alone=call.alone, waits=wait):
            began_s = time.monotonic()
            if waited:
                channel.send(Began(at_s=began_s, waited_s=began_s - asked_s))
            return Answer(result=carry_out(call), began_s=began_s, ended_s=time.monotonic())
    except EngineError as error:
        return Answer(result=Raised(error=str(error), trace=""), began_s=began_s, ended_s=time.monotonic())


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
