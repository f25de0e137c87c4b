"""One call in a worker of its own, for commands that need TVM once.

A broken model file or a bug in a compiler then ends a worker, not the program.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tuneloom.engine.api import Engine, MachineLost
from tuneloom.engine.calls import Call, CallEnded, CallResult, CallWaits, Lost, Returned
from tuneloom.engine.local import LocalEngine
from tuneloom.engine.sharing.locks import core_lock
from tuneloom.errors import EngineError, TuneloomError

_LOG = logging.getLogger("tuneloom.devices")
_ONLY = "only"
_LIMIT_S = 3600.0


def call_in_worker(
    function: str,
    *arguments: Any,
    cores: frozenset[int] | None = None,
    timeout_s: float | None = _LIMIT_S,
    environment: Mapping[str, str] | None = None,
    locks: Sequence[str] = (),
) -> Any:
    """The value of `package.module:function` called in a fresh process.

    With `cores` or `locks` it has these to itself: it waits while other processes measure there.
    An error that the function returned as a value is raised here, and EngineError for a call that
    crashes or takes longer than `timeout_s` (None: as long as it likes).
    """
    engine = LocalEngine()
    try:
        call = Call(
            function=function,
            arguments=arguments,
            cores=cores,
            alone=cores is not None or bool(locks),
            locks=(*locks, *map(core_lock, cores or ())),
            timeout_s=timeout_s,
            environment=environment or {},
        )
        engine.start(_ONLY, call)
        result = end_of(engine, _ONLY, None)
    finally:
        engine.close()
    if isinstance(result, Returned):
        if isinstance(result.value, TuneloomError):
            raise result.value
        return result.value
    raise EngineError(f"{function.partition(':')[2]} failed: {result}")


def ends_of(
    engine: Engine,
    calls: Sequence[Call],
    glance_s: float | None = None,
    check: Callable[[], None] = lambda: None,
) -> list[CallResult | Lost]:
    """Carry out calls side by side and wait for all of them, while nothing else uses the engine.

    `check` is called after every glance and may raise.
    """
    ids = {f"{_ONLY}{number}": call for number, call in enumerate(calls)}
    ends: dict[str, CallResult | Lost] = {}
    for id, call in ids.items():
        engine.start(id, call)
    while len(ends) < len(ids):
        for report in engine.poll(glance_s):
            if isinstance(report, CallEnded) and report.id in ids:
                ends[report.id] = report.result
            elif isinstance(report, MachineLost):  # the engine has forgotten the calls there
                left = {id: call.place for id, call in ids.items() if id not in ends}
                there = [id for id, place in left.items() if place and place.machine == report.name]
                ends |= dict.fromkeys(there, Lost(reason=report.reason))
        check()
    return [ends[id] for id in ids]


def end_of(
    engine: Engine, call_id: str, glance_s: float | None, check: Callable[[], None] = lambda: None
) -> CallResult | Lost:
    """Wait for the end of one call; `check` is called after every glance and may raise."""
    while True:
        for report in engine.poll(glance_s):
            if isinstance(report, CallEnded) and report.id == call_id:
                return report.result
            if isinstance(report, CallWaits):
                _LOG.warning("waiting for a device on which another process measures")
        check()
