"""Sums with a single term as what they are: assignments.

TVM's rules drop loops of one turn. A reduction that is left without any is taken for a block into which
everything behind it may be moved, and what is added there is added twice: to its start and to its result.
"""

from typing import Any

from tuneloom.compiler.lazy import ir, s_tir, tirx, tvm_ffi
from tuneloom.compiler.statements import is_scheduled, with_blocks


def without_sums_of_one(module: Any) -> Any:
    """The module whose kernels without a schedule have no reduction of one turn."""
    return type(module)({one: _assigned(f) for one, f in module.functions.items()}, attrs=module.attrs)


def _assigned(function: Any) -> Any:
    if not isinstance(function, tirx.PrimFunc) or is_scheduled(function):
        return function
    return tirx.PrimFunc(
        function.params, with_blocks(function.body, _once), function.ret_type, function.attrs
    )


def _once(block: Any) -> Any:
    """A block that starts and adds once, as one that stores the sum."""
    start, store = block.init, block.body
    if not isinstance(start, tirx.BufferStore) or not isinstance(store, tirx.BufferStore):
        return block
    if not all(_is_single(one) for one in block.iter_vars):
        return block

    def started(load: Any) -> Any:
        return start.value if load.source.same_as(start.buffer) else load

    value = tvm_ffi.structural_map(store.value, ((ir.TensorLoad, started),))
    return s_tir.SBlock(
        [tirx.IterVar(one.dom, one.var, tirx.IterVar.DataPar, one.thread_tag) for one in block.iter_vars],
        [one for one in block.reads if not one.source.same_as(start.buffer)],
        block.writes,
        block.name_hint,
        tirx.BufferStore(store.buffer, value, store.indices),
        None,
        block.alloc_buffers,
        block.match_buffers,
        block.annotations,
    )


def _is_single(axis: Any) -> bool:
    """Whether an axis is none of a sum, or has one turn."""
    extent = getattr(axis.dom.extent, "value", axis.dom.extent)
    return bool(axis.iter_type != tirx.IterVar.CommReduce or extent == 1)
