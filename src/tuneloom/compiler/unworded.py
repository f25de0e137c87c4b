"""Import TVM without the errors that it raises and catches meanwhile.

To word the first error of a process, TVM reads the symbols of all its libraries, for a second. While it is
imported it asks for classes and operators that its library lacks, and does without them: it is told so here
before that becomes an error.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import Any

_DISTRIBUTED = "tvm.runtime.disco"
_SCRIPTS, _SCRIPTED = "tvm.tirx.script.builder.ir", "tirx."
_PRINTED = "TScriptPrinterName"


@contextmanager
def no_errors_worded() -> Iterator[None]:
    """Let TVM's import do without its package for several devices; whoever asks for that later finds it."""
    if _DISTRIBUTED in sys.modules or "tvm" in sys.modules:
        yield
        return
    missing: Any = None
    sys.modules[_DISTRIBUTED] = missing
    finder = _OperatorsAsked()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        del sys.modules[_DISTRIBUTED]
        sys.meta_path.remove(finder)
        finder.restore()


class _OperatorsAsked(MetaPathFinder):
    """Finds nothing, but sees when TVM's scripts are imported, which ask for operators by their names."""

    def __init__(self) -> None:
        self._replaced: dict[str, Any] = {}

    def find_spec(self, name: str, *_: Any) -> None:
        if name == _SCRIPTS and not self._replaced:
            from tvm.ir import _ffi_api

            own = {"GetOp": _get_known(_ffi_api), "RegisterOpAttr": _name_once(_ffi_api)}
            self._replaced = {name: getattr(_ffi_api, name) for name in own}
            vars(_ffi_api).update(own)

    def restore(self) -> None:
        """Let operators be looked up as TVM does it."""
        if self._replaced:
            from tvm.ir import _ffi_api

            vars(_ffi_api).update(self._replaced)


def _get_known(api: Any) -> Callable[[str], Any]:
    known, get = frozenset(map(str, api.ListOpNames())), api.GetOp

    def get_known(name: str) -> Any:
        if name.startswith(_SCRIPTED) and name not in known:
            raise AttributeError(f"Operator {name} is not registered")
        return get(name)

    return get_known


def _name_once(api: Any) -> Callable[..., None]:
    register, get = api.RegisterOpAttr, api.GetOp

    def name_once(operator: str, attribute: str, value: Any, level: int) -> None:
        if attribute == _PRINTED and api.OpGetAttr(get(operator), attribute) == value:
            return
        register(operator, attribute, value, level)

    return name_once
