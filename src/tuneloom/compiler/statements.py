"""The statements of a kernel: its blocks, and others in their place."""

from collections.abc import Callable, Iterator
from typing import Any

from tuneloom.compiler.lazy import s_tir, tirx

Change = Callable[[Any], Any]


def is_scheduled(function: Any) -> bool:
    """Whether a kernel came with its schedule, so that its loops are to be left alone."""
    return bool(function.attrs) and bool(function.attrs.get("tirx.is_scheduled", False))


def with_blocks(statement: Any, change: Change) -> Any:
    """A statement with each block replaced by what `change` makes of it, inner blocks first."""
    match statement:
        case tirx.SeqStmt():
            return tirx.SeqStmt([with_blocks(one, change) for one in statement.seq])
        case tirx.For():
            return _loop_around(with_blocks(statement.body, change), statement)
        case s_tir.SBlockRealize():
            block = change(rebuilt(statement.block, body=with_blocks(statement.block.body, change)))
            return s_tir.SBlockRealize(statement.iter_values, statement.predicate, block)
    return statement


def blocks_in(statement: Any) -> Iterator[Any]:
    """All blocks of a statement, outer ones first."""
    match statement:
        case tirx.SeqStmt():
            for one in statement.seq:
                yield from blocks_in(one)
        case tirx.For():
            yield from blocks_in(statement.body)
        case tirx.IfThenElse():
            yield from blocks_in(statement.then_case)
        case s_tir.SBlockRealize():
            yield statement.block
            yield from blocks_in(statement.block.body)


def rebuilt(block: Any, *, name: str | None = None, body: Any = None) -> Any:
    """A block under another name or with another body."""
    return s_tir.SBlock(
        block.iter_vars,
        block.reads,
        block.writes,
        name or block.name_hint,
        block.body if body is None else body,
        block.init,
        block.alloc_buffers,
        block.match_buffers,
        block.annotations,
    )


def _loop_around(body: Any, loop: Any) -> Any:
    return tirx.For(
        loop.loop_var, loop.min, loop.extent, loop.kind, body, loop.thread_binding, loop.annotations
    )
