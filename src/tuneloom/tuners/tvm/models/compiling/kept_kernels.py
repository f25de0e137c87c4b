"""Kernels that a process scheduled and compiled, for the next model that has them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import tvm_ffi

from tuneloom.compiler.objects import renamed

_ENTRY = "__tvm_ffi_"
"""How symbols of functions that TVM calls begin."""
_MOST = 1000


class _Kept(NamedTuple):
    function: Any
    name: str
    code: bytes


class KeptKernels:
    """Single kernels, found by what they compute and for which target, not by name.

    Of loops there is what schedules made of them, of scheduled kernels there are object files.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, str], _Kept] = {}
        self._scheduled: dict[tuple[int, str], tuple[Any, Any]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, kernels: Iterable[tuple[str, Any]], target: Any) -> dict[str, bytes]:
        """Those of these functions that were compiled before: object files under the names they have now."""
        found: dict[str, bytes] = {}
        for name, function in kernels:
            nameless = _nameless(function)
            known = self._kept.get(_key(nameless, target))
            if known is not None and tvm_ffi.structural_equal(known.function, nameless):
                code = _under(known, name)
                found |= {} if code is None else {name: code}
        return found

    def keep(self, kernels: Mapping[str, Any], codes: Mapping[str, bytes], target: Any) -> None:
        """Remember what was compiled of these functions."""
        for name, code in codes.items():
            nameless = _nameless(kernels[name])
            self._kept[_key(nameless, target)] = _Kept(nameless, name, code)
        _shorten(self._kept)

    def scheduled(self, function: Any, how: str, make: Callable[[], Any]) -> Any:
        """A kernel scheduled in this way, which `make` does unless it was done before."""
        nameless = _nameless(function)
        key = tvm_ffi.structural_hash(nameless), how
        loops, done = self._scheduled.get(key, (None, None))
        if loops is None or not tvm_ffi.structural_equal(loops, nameless):
            done = make()
            self._scheduled[key] = nameless, done
            _shorten(self._scheduled)
        return done


def _shorten(kept: dict[tuple[int, str], Any]) -> None:
    """Let the oldest give way."""
    for key in list(kept)[:-_MOST]:
        del kept[key]


def _nameless(function: Any) -> Any:
    return function.without_attr("global_symbol")


def _key(nameless: Any, target: Any) -> tuple[int, str]:
    return tvm_ffi.structural_hash(nameless), str(target)


def _under(kept: _Kept, name: str) -> bytes | None:
    return kept.code if kept.name == name else renamed(kept.code, f"{_ENTRY}{kept.name}", f"{_ENTRY}{name}")
