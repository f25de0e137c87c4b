"""Kernels made of tensor expressions, each once while a model is lowered.

TVM makes a kernel anew for every operator it lowers, at some 3 ms, and then finds that it has the same one
already: layers of a network repeat each other.
"""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FunctionType
from typing import Any

from tuneloom.compiler.lazy import relax, tvm

_PLAIN = (int, float, str, bool, type(None))


class NotComparableError(Exception):
    """Something of which we can't say whether it makes the same kernel another time."""


@contextmanager
def kernels_made_once() -> Iterator[None]:
    """Let TVM make each kernel once; only for one target, in one thread."""
    from tvm.relax import block_builder

    original = block_builder.gen_call_tir_inputs
    block_builder.gen_call_tir_inputs = _Kernels(original)
    try:
        yield
    finally:
        block_builder.gen_call_tir_inputs = original


class _Kernels:
    """The kernels made so far, by the function that computes them and what it was given."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        self._known: dict[Any, Any] = {}

    def __call__(self, function: Any, *arguments: Any, **options: Any) -> Any:
        tensors: list[Any] = []
        try:
            key = _told(function, tensors), _told(arguments, tensors), _told(options, tensors)
        except NotComparableError:
            return self._make(function, *arguments, **options)
        if key not in self._known:
            self._known[key] = self._make(function, *arguments, **options)
        kernel, _, types = self._known[key]
        return kernel, tensors, types


def _told(value: Any, tensors: list[Any]) -> Any:
    """What decides on a kernel as a plain value; tensors are added in the order in which TVM passes them."""
    if isinstance(value, _PLAIN):
        return type(value), value
    if isinstance(value, (tuple, list)):
        return type(value), tuple(_told(one, tensors) for one in value)
    if isinstance(value, dict):
        return tuple((name, _told(one, tensors)) for name, one in value.items())
    if isinstance(value, partial):
        return tuple(_told(one, tensors) for one in (value.func, value.args, value.keywords))
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return value.__code__, _told((cells, value.__defaults__, value.__kwdefaults__), tensors)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return type(value), _told([getattr(value, one.name) for one in dataclasses.fields(value)], tensors)
    return _of_tvm(value, tensors)


def _of_tvm(value: Any, tensors: list[Any]) -> Any:
    import tvm_ffi

    if isinstance(value, (tvm.tirx.IntImm, tvm.tirx.FloatImm)):
        return str(value.ty), value.value
    if isinstance(value, (tvm_ffi.Array, relax.ShapeExpr)):
        return tuple(_told(one, tensors) for one in getattr(value, "values", value))
    kind = getattr(value, "ty", None)
    if not isinstance(kind, relax.TensorType) or kind.vdevice is not None or kind.shape is None:
        raise NotComparableError
    tensors.append(value)
    return tuple(int(one.value) for one in kind.shape.values if _is_number(one)), str(kind.dtype)


def _is_number(extent: Any) -> bool:
    if not hasattr(extent, "value"):
        raise NotComparableError
    return True
