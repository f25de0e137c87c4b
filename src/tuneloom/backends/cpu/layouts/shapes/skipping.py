"""Sums whose terms are zero under a condition: the loops leave these terms out.

TVM moves the condition of a statement out of all loops that it does not depend on. A condition
inside an expression stays where it is, in the innermost loop, and may cost more than it saves.
"""

from typing import Any

from tuneloom.compiler.lazy import tirx
from tuneloom.compiler.statements import rebuilt, with_blocks

TEAM = "tuneloom.team"
"""How many neighbouring blocks of channels meet the same condition; an annotation of the reduction."""


def skip_zeros(function: Any) -> Any:
    """A function with `sum += value if condition else 0` made `if condition: sum += value`."""
    return function.with_body(with_blocks(function.body, _skipped))


def _skipped(block: Any) -> Any:
    return rebuilt(block, body=_conditional(block.body)) if TEAM in block.annotations else block


def _conditional(store: Any) -> Any:
    condition, value, _ = store.value.b.args
    return tirx.IfThenElse(
        condition, tirx.BufferStore(store.buffer, store.value.a + value, store.indices), None
    )
