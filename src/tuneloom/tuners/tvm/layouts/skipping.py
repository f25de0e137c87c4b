"""Sums whose terms are zero under a condition: the loops leave these terms out.

TVM moves the condition of a statement out of all loops that it does not depend on. A condition
inside an expression stays where it is, in the innermost loop, and may cost more than it saves.
"""

from typing import Any

TEAM = "tuneloom.team"
"""How many neighbouring blocks of channels meet the same condition; an annotation of the reduction."""


def skip_zeros(function: Any) -> Any:
    """A function with `sum += value if condition else 0` made `if condition: sum += value`."""
    return function.with_body(_skipped(function.body))


def _skipped(statement: Any) -> Any:
    from tvm import s_tir, tirx

    match statement:
        case tirx.SeqStmt():
            return tirx.SeqStmt([_skipped(one) for one in statement.seq])
        case tirx.For():
            return _with_body(statement, _skipped(statement.body))
        case s_tir.SBlockRealize():
            block = _skipped_block(statement.block)
            return s_tir.SBlockRealize(statement.iter_values, statement.predicate, block)
    return statement


def _with_body(loop: Any, body: Any) -> Any:
    from tvm import tirx

    return tirx.For(
        loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding, loop.annotations
    )


def _skipped_block(block: Any) -> Any:
    from tvm import s_tir

    body = _conditional(block.body) if TEAM in block.annotations else _skipped(block.body)
    return s_tir.SBlock(
        block.iter_vars,
        block.reads,
        block.writes,
        block.name_hint,
        body,
        block.init,
        block.alloc_buffers,
        block.match_buffers,
        block.annotations,
    )


def _conditional(store: Any) -> Any:
    from tvm import tirx

    condition, value, _ = store.value.b.args
    return tirx.IfThenElse(
        condition, tirx.BufferStore(store.buffer, store.value.a + value, store.indices), None
    )
