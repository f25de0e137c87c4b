"""Whether neighbours in a result are made of neighbours, and what is computed with them: do vectors pay?"""

from dataclasses import dataclass
from typing import Any

from tuneloom.backends.cpu.templates.growth import operands
from tuneloom.compiler.lazy import ir, tirx, tvm, tvm_ffi

_MANY_STEPS = 4


@dataclass(frozen=True, slots=True)
class Reading:
    """How a block reads along its last axis."""

    even: bool
    """Whether a step along it is always the same step in what is read."""
    alike: bool
    """Whether no choice between values depends on it."""
    steps: int
    """How much is computed with what is read."""

    @property
    def much_is_computed(self) -> bool:
        """Whether arithmetic takes longer than moving values does."""
        return self.steps >= _MANY_STEPS

    @property
    def pays_in_vectors(self) -> bool:
        """Whether vectors gain more than it costs to gather values from many places."""
        return self.even or self.much_is_computed


def reading_of(block: Any) -> Reading:
    """How a block that stores one value at each place reads what it is made of."""
    last, analyzer = block.iter_vars[-1].var, bounded(block)
    indices, conditions = _deciding(block.body)
    return Reading(
        even=all(is_even(analyzer.simplify(part), last) for part in indices),
        alike=not any(depends(analyzer.simplify(part), last) for part in conditions),
        steps=_steps(block.body),
    )


def bounded(block: Any) -> Any:
    """What simplifies expressions by how far the axes of a block go."""
    analyzer = tvm.sym.Analyzer()
    for var in block.iter_vars:
        analyzer.bind(var.var, var.dom)
    return analyzer


def together(block: Any) -> int:
    """How many of the last axes are one stream: whatever is read lies in their order, or depends on none.

    Nor is anything computed with these axes themselves.
    """
    axes = [(var.var, int(getattr(var.dom.extent, "value", 0))) for var in block.iter_vars]
    loads, computed = loads_of(block.body), _computed_with(block.body.value)
    count = 0
    for axis, _ in reversed(axes):
        if any(axis.same_as(one) for one in computed):
            break
        if not all(_in_order(load, axes[-count - 1 :]) for load in loads):
            break
        count += 1
    return count


def _computed_with(value: Any) -> list[Any]:
    """The axes that a value depends on by more than where it is read."""
    if isinstance(value, ir.TensorLoad):
        return []
    if isinstance(value, ir.Var):
        return [value]
    return [axis for part in operands(value) for axis in _computed_with(part)]


def _in_order(load: Any, axes: list[tuple[Any, int]]) -> bool:
    """Whether a tensor is read at these axes in turn, which are all there is of its last ones; or at none."""
    if not any(depends(index, axis) for index in load.indices for axis, _ in axes):
        return True
    last = list(load.indices)[-len(axes) :]
    sizes = [int(getattr(extent, "value", 0)) for extent in load.source.ty.shape][-len(axes) :]
    others = list(load.indices)[: -len(axes)]
    return (
        len(last) == len(axes)
        and all(index.same_as(axis) for index, (axis, _) in zip(last, axes, strict=True))
        and sizes == [extent for _, extent in axes]
        and not any(depends(index, axis) for index in others for axis, _ in axes)
    )


def loads_of(body: Any) -> list[Any]:
    """Every place where a tensor is read."""
    found: list[Any] = []
    tvm_ffi.structural_walk(body, ((ir.TensorLoad, found.append),))
    return found


def _deciding(body: Any) -> tuple[list[Any], list[Any]]:
    """Where values are read, and what decides which of them are."""
    indices: list[Any] = []
    conditions: list[Any] = []

    def called(call: Any) -> None:
        if str(getattr(call.op, "name", "")).endswith("if_then_else"):
            conditions.append(call.args[0])

    tvm_ffi.structural_walk(
        body,
        (
            (ir.TensorLoad, lambda load: indices.extend(load.indices)),
            (tirx.Select, lambda choice: conditions.append(choice.condition)),
            (ir.Call, called),
        ),
    )
    return indices, conditions


def _steps(body: Any) -> int:
    """The operations on real numbers that one value takes."""
    found: list[str] = []
    kinds = (tirx.Add, tirx.Sub, tirx.Mul, tirx.Div)
    tvm_ffi.structural_walk(body, (kinds, lambda operation: found.append(str(operation.ty))))
    return sum("float" in kind for kind in found)


def is_even(index: Any, last: Any) -> bool:
    """Whether a step along an axis is always the same step of an index."""
    return not depends(index, last) or len(tvm.sym.detect_linear_equation(index, [last])) > 0


def depends(part: Any, variable: Any) -> bool:
    """Whether a variable occurs in an expression."""
    return any(var.same_as(variable) for var in tirx.analysis.undefined_vars(part, []))
