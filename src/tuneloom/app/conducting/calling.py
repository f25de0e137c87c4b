"""One call in a worker of its own, for commands that need TVM once.

A broken model file or a bug in a compiler then ends a worker, not the program.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tuneloom.engine.api import Engine
from tuneloom.engine.calls import Call, CallEnded, CallResult, Lost, Returned
from tuneloom.engine.local import LocalEngine
from tuneloom.errors import EngineError, TuneloomError

_ONLY = "only"
_LIMIT_S = 3600.0


def call_in_worker(
    function: str,
    *arguments: Any,
    cores: frozenset[int] | None = None,
    timeout_s: float | None = _LIMIT_S,
    environment: Mapping[str, str] | None = None,
) -> Any:
    """The value of `package.module:function` called in a fresh process.

    An error that the function returned as a value is raised here, and EngineError for a call that
    crashes or takes longer than `timeout_s` (None: as long as it likes).
    """
    engine = LocalEngine()
    try:
        call = Call(
            function=function,
            arguments=arguments,
            cores=cores,
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


def end_of(
    engine: Engine, call_id: str, glance_s: float | None, check: Callable[[], None] = lambda: None
) -> CallResult | Lost:
    """Wait for the end of one call; `check` is called after every glance and may raise."""
    while True:
        for report in engine.poll(glance_s):
            if isinstance(report, CallEnded) and report.id == call_id:
                return report.result
        check()
