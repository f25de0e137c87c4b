"""One call in a worker of its own, for commands that need TVM once.

A broken model file or a bug in a compiler then ends a worker, not the program.
"""

from typing import Any

from tuneloom.engine.calls import Call, Raised, Returned
from tuneloom.engine.local import LocalEngine
from tuneloom.errors import EngineError, TuneloomError

_ONLY = "only"


def call_in_worker(function: str, *arguments: Any, cores: frozenset[int] | None = None) -> Any:
    """The value of `package.module:function` called in a fresh process.

    An error that the function returned as a value is raised here.
    """
    engine = LocalEngine()
    try:
        engine.start(_ONLY, Call(function=function, arguments=arguments, cores=cores))
        while not (ended := engine.poll(None)):
            pass
    finally:
        engine.close()
    result = ended[0].result
    if isinstance(result, Returned):
        if isinstance(result.value, TuneloomError):
            raise result.value
        return result.value
    reason = result.error if isinstance(result, Raised) else str(result)
    raise EngineError(f"{function.partition(':')[2]} failed: {reason}")
