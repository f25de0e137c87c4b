"""Rows that are added to, or put into, rows of a tensor: one place for each row, not for each number.

Programs repeat the places of rows for all numbers of a row, since that is what the operator takes. TVM's
loops for it go through a column at a time.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any

from tuneloom.compiler.lazy import te, tirx

_BROUGHT_IN: Mapping[str, Callable[[Any, Any], Any]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": lambda old, new: tirx.min(old, new),
    "max": lambda old, new: tirx.max(old, new),
}
WAYS = frozenset(_BROUGHT_IN)
"""What may become of a number and the one that is brought in."""


def scattered_rows(data: Any, places: Any, updates: Any, how: str, lanes: int) -> Any:
    """`data` with each row of `updates` brought in at its place; places below zero count from the end.

    Rows for places that do not exist are left out: they would be written into other memory.
    """
    rows, count = int(data.shape[0]), int(places.shape[0])
    width = prod(int(extent) for extent in data.shape[1:])
    step = lanes if width % lanes == 0 else 1

    def loops(data_of: Any, places_of: Any, updates_of: Any, result_of: Any) -> Any:
        from tvm.script.ir_builder import IRBuilder
        from tvm.script.ir_builder import tirx as ir

        before, where, new, after = map(ir.buffer_proxy, (data_of, places_of, updates_of, result_of))
        with IRBuilder() as builder:
            with ir.seq_scope():
                with ir.serial(0, rows * width // step) as block, ir.vectorized(0, step) as lane:
                    at = block * step + lane
                    after[at] = before[at]
                with ir.serial(0, count) as row:
                    place = where[row]
                    first = (place + (place < 0) * rows) * width
                    exists = tirx.all(place >= -rows, place < rows)
                    with (
                        ir.If(exists),
                        ir.Then(),
                        ir.serial(0, width // step) as block,
                        ir.vectorized(0, step) as lane,
                    ):
                        at = block * step + lane
                        after[first + at] = _BROUGHT_IN[how](after[first + at], new[row * width + at])
            return builder.get()

    return te.extern(
        [data.shape],
        [data, places, updates],
        lambda given, made: loops(*given, *made),
        dtype=[str(data.dtype)],
        name="scatter_rows",
        tag="scatter_rows",
    )
