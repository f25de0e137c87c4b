"""How large an expression becomes when the steps of a kernel are inlined into each other.

A step that reads a value three times holds it three times then; ten such steps in a row are an
expression of sixty thousand copies, which TVM does not come to the end of.
"""

from collections import Counter
from typing import Any

from tuneloom.compiler.lazy import s_tir, tvm

LARGEST = 4000
"""Parts of an expression; usual kernels have some tens to some hundreds."""
_FEW_STEPS = 8
_OPERANDS = ("a", "b", "value", "condition", "true_value", "false_value", "args")


def outgrows(module: Any) -> bool:
    """Whether a kernel becomes too large an expression if all its steps are inlined."""
    schedule = s_tir.Schedule(module, error_render_level="none")
    try:
        blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    except s_tir.ScheduleError:
        return False
    if len(blocks) < _FEW_STEPS:
        return False
    return _largest([schedule.get(block) for block in blocks]) > LARGEST


def too_large_inlined(step: Any, reader: Any) -> bool:
    """Whether one step, inlined into the one that reads it, makes too large an expression."""
    size, loads = _tree(_value(reader))
    reads = sum(loads[_buffer(written)] for written in step.writes)
    return size + reads * _tree(_value(step))[0] > LARGEST


def _largest(steps: list[Any]) -> int:
    inlined: dict[int, int] = {}
    largest = 0
    for step in steps:
        size, loads = _tree(_value(step))
        size += sum(count * inlined.get(buffer, 0) for buffer, count in loads.items())
        largest = max(largest, size)
        reduces = any(int(var.iter_type) for var in step.iter_vars)
        for write in step.writes:
            inlined[_buffer(write)] = 0 if reduces else size
    return largest


def _value(step: Any) -> Any:
    return getattr(step.body, "value", None)


def _tree(expression: Any) -> tuple[int, Counter[int]]:
    """The parts of an expression, each as often as it is written, and the buffers that are read."""
    if isinstance(expression, tvm.ir.TensorLoad):
        return 1, Counter([_buffer(expression)])
    size, loads = 1, Counter[int]()
    for operand in operands(expression):
        inner, read = _tree(operand)
        size += inner
        loads += read
    return size, loads


def operands(expression: Any) -> list[Any]:
    """What an expression is made of."""
    found = [getattr(expression, name, None) for name in _OPERANDS]
    several = found.pop()
    plain = [one for one in found if _is_expression(one)]
    return plain + [one for one in several or () if _is_expression(one)]


def _is_expression(value: Any) -> bool:
    return isinstance(value, tvm.ir.Expr)


def _buffer(place: Any) -> int:
    return hash(place.source)  # names may come twice
