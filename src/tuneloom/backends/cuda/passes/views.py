"""Reshapes out of the way of fusing: behind elementwise operators instead of before them.

Programs flatten matrices for a product and restore them afterwards. What follows, an activation or a
residual, computes the same on the flat matrix, and then belongs to the product's kernel.
"""

from functools import partial
from typing import Any

import numpy as np

from tuneloom.compiler.number_types import HALF
from tuneloom.compiler.rewriting import (
    BINARY,
    UNARY,
    Lookup,
    array_of,
    bound_of,
    constant_of,
    dtype_of,
    name_of,
    rewritten,
    shape_of,
    shape_of_type,
)

_ROUNDS = 3
"""What one round moves, the next may join."""
_VIEWED = frozenset(("squeeze", "expand_dims", "flatten"))
_REDUCTIONS = frozenset(("mean", "sum", "max", "min"))


def reshapes_behind(module: Any, rank: int = 2) -> Any:
    """The module with reshapes behind elementwise operators, and moves of data joined or dropped.

    What is reshaped is a flat matrix, or has up to `rank` axes.
    """
    for _ in range(_ROUNDS):
        module = rewritten(module, partial(_moved, rank))
    return module


def splits_as_slices(module: Any) -> Any:
    """The module with parts of split tensors as slices, which kernels read in place."""
    return rewritten(module, _part)


def _part(_builder: Any, item: Any, made: Lookup) -> Any | None:
    from tvm import relax

    split: Any = made(item.tuple_value) if isinstance(item, relax.TupleGetItem) else None
    shape = shape_of(split.args[0]) if name_of(split) == "split" else None
    if shape is None:
        return None
    axis = int(split.attrs.axis) % len(shape)
    sizes = [(shape_of_type(one) or shape)[axis] for one in split.ty.fields]
    begin = sum(sizes[: item.index])
    return relax.op.strided_slice(split.args[0], [axis], [begin], [begin + sizes[item.index]])


def _moved(rank: int, builder: Any, call: Any, made: Lookup) -> Any | None:
    from tvm import relax

    name = name_of(call)
    if name == "reshape":
        return _joined(call, made)
    if name in _VIEWED and shape_of(call) is not None:
        return relax.op.reshape(call.args[0], shape_of(call))
    if name in _REDUCTIONS:
        return _reduced_in_place(builder, call, made)
    if name == "broadcast_to":
        return call.args[0] if shape_of(call.args[0]) == shape_of(call) else None
    if name == "astype":
        unchanged = _rounded_twice(call, made)
        if unchanged is not None:
            return unchanged
    if name == "take":
        part = _sliced(builder, call)
        return _rolled(builder, call) if part is None else part
    if name == "nn.pad":
        return call.args[0] if shape_of(call.args[0]) == shape_of(call) else None
    if name == "permute_dims":
        return _turned_once(call, made)
    if name == "strided_slice":
        return _sliced_before(builder, call, made)
    if name in UNARY:
        return _behind(rank, builder, call, made, [0])
    if name in BINARY:
        return _behind(rank, builder, call, made, _same_shape(call))
    return None


def _joined(call: Any, made: Lookup) -> Any | None:
    """A reshape of a reshape is one; one to the same shape is none."""
    from tvm import relax

    source = made(call.args[0])
    first = source.args[0] if name_of(source) == "reshape" else call.args[0]
    if shape_of(first) is not None and shape_of(first) == shape_of(call):
        return first
    if first is call.args[0]:
        return None
    return relax.op.reshape(first, shape_of(call) or call.args[1])


def _reduced_in_place(builder: Any, call: Any, made: Lookup) -> Any | None:
    """A reduction of a transposed tensor reads it as it was, unless that would turn what is left."""
    from tvm import relax

    value, shape = call.args[0], shape_of(call.args[0])
    if shape is None or call.attrs.axis is None:
        return None
    wanted = {int(axis) % len(shape) for axis in call.attrs.axis}
    place = {axis: axis for axis, extent in enumerate(shape) if extent > 1}
    while (source := made(value)) is not value and (moved := _moved_axes(source)) is not None:
        place = {axis: moved[at] for axis, at in place.items()}
        value = source.args[0]
    summed = sorted(at for axis, at in place.items() if axis in wanted)
    kept = [at for axis, at in place.items() if axis not in wanted]
    if value is call.args[0] or kept != sorted(kept) or not summed:
        return None
    done = builder.emit(getattr(relax.op, name_of(call))(value, summed))
    return relax.op.reshape(done, shape_of(call))


def _moved_axes(view: Any) -> dict[int, int] | None:
    """Where the axes of a transposition were before, or those of a reshape that moves none."""
    if name_of(view) == "permute_dims":
        return dict(enumerate(axes_of(view)))
    if name_of(view) != "reshape":
        return None
    before, after = shape_of(view.args[0]), shape_of(view)
    if before is None or after is None:
        return None
    old, new = ([axis for axis, extent in enumerate(one) if extent > 1] for one in (before, after))
    same = [before[axis] for axis in old] == [after[axis] for axis in new]
    return dict(zip(new, old, strict=True)) if same else None


def _rounded_twice(call: Any, made: Lookup) -> Any | None:
    """A value that was widened and is narrowed to its own type again is itself."""
    from tvm import relax

    source = made(call.args[0])
    moved = name_of(source) == "reshape"
    cast = made(source.args[0]) if moved else source
    if name_of(cast) != "astype" or dtype_of(cast) != "float32":
        return None
    first = cast.args[0]
    if dtype_of(first) != dtype_of(call) or dtype_of(first) not in HALF:
        return None
    return relax.op.reshape(first, shape_of(call)) if moved else first


def _turned_once(call: Any, made: Lookup) -> Any | None:
    """A transposition of a transposition is one; one that leaves all axes in their places is none.

    One that moves only axes of a single element is a reshape.
    """
    from tvm import relax

    axes, source = axes_of(call), made(call.args[0])
    first = call.args[0]
    if name_of(source) == "permute_dims":
        inner = axes_of(source)
        first, axes = source.args[0], [inner[axis] for axis in axes]
    if axes == list(range(len(axes))):
        return first
    shape = shape_of(first)
    if shape is not None and sorted(moved := [axis for axis in axes if shape[axis] > 1]) == moved:
        return relax.op.reshape(first, shape_of(call))
    return None if first is call.args[0] else relax.op.permute_dims(first, axes)


def axes_of(permute: Any) -> list[int]:
    """The axes of a transposition, counted from the front."""
    axes = permute.attrs.axes
    if axes is None:
        return list(range(len(shape_of(permute) or ())))[::-1]
    rank = len(axes)
    return [int(axis) % rank for axis in axes]


def _sliced_before(builder: Any, call: Any, made: Lookup) -> Any | None:
    """A slice of a transposed tensor is a transposed slice, which is read in place."""
    from tvm import relax

    source = made(call.args[0])
    if name_of(source) != "permute_dims":
        return None
    axes = axes_of(source)
    turned = [axes[bound_of(one)] for one in call.args[1].fields]
    bounds = ([bound_of(one) for one in tuple_.fields] for tuple_ in call.args[2:])
    part = builder.emit(relax.op.strided_slice(source.args[0], turned, *bounds))
    return relax.op.permute_dims(part, axes)


def _sliced(builder: Any, call: Any) -> Any | None:
    """One element of an axis, which is a slice: kernels read slices in place."""
    from tvm import relax

    place, axis, shape = constant_of(call.args[1]), call.attrs.axis, shape_of(call.args[0])
    if place is None or axis is None or shape is None or shape_of(call.args[1]) != ():
        return None
    at = int(place) % shape[int(axis)]
    part = builder.emit(relax.op.strided_slice(call.args[0], [int(axis)], [at], [at + 1]))
    return relax.op.reshape(part, shape_of(call))


def _rolled(builder: Any, call: Any) -> Any | None:
    """Elements of an axis in order, but from one in the middle on: two slices joined."""
    from tvm import relax

    numbers, axis, shape = array_of(call.args[1]), call.attrs.axis, shape_of(call.args[0])
    if numbers is None or numbers.ndim != 1 or axis is None or shape is None or len(numbers) < 2:
        return None
    extent, first = shape[int(axis)], int(numbers[0])
    if len(numbers) != extent or (numbers != (np.arange(extent) + first) % extent).any():
        return None
    parts = [
        builder.emit(relax.op.strided_slice(call.args[0], [int(axis)], [begin], [end]))
        for begin, end in ((first, extent), (0, first))
        if begin < end
    ]
    return relax.op.concat(parts, int(axis)) if len(parts) > 1 else call.args[0]


def _same_shape(call: Any) -> list[int]:
    """Operands of the result's shape; the others must be constants along the last axis, or single numbers."""
    shapes = [shape_of(one) for one in call.args]
    whole = [n for n, shape in enumerate(shapes) if shape is not None and shape == shape_of(call)]
    single = [n for n, one in enumerate(call.args) if constant_of(one) is not None or is_row(one)]
    return whole if set(whole) | set(single) == set(range(len(shapes))) else []


def is_row(value: Any) -> bool:
    """Whether a constant has all its elements along the last axis."""
    array = array_of(value)
    return array is not None and array.ndim > 0 and array.size == array.shape[-1]


def _behind(rank: int, builder: Any, call: Any, made: Lookup, whole: list[int]) -> Any | None:
    """The same on the operand before its reshape, and the reshape after it."""
    from tvm import relax

    sources = [made(call.args[n]) for n in whole]
    flat = next((one.args[0] for one in sources if name_of(one) == "reshape" and _flat(one, rank)), None)
    if flat is None or shape_of(call) is None:
        return None
    shape = shape_of(flat)
    operands = list(call.args)
    for n in range(len(operands)):
        if n not in whole:
            operands[n] = as_row(operands[n])
            continue
        source = made(operands[n])
        same = name_of(source) == "reshape" and shape_of(source.args[0]) == shape
        operands[n] = source.args[0] if same else builder.emit(relax.op.reshape(operands[n], shape))
    done = builder.emit(relax.Call(call.op, operands, call.attrs))
    return relax.op.reshape(done, shape_of(call))


def as_row(constant: Any) -> Any:
    """A constant along the last axis without others; anything that is no tensor as it is."""
    from tvm import relax

    array = array_of(constant)
    if array is None:  # a bound of `clip`, which is no tensor
        return constant
    return constant if array.ndim < 2 else relax.const(array.reshape(-1), dtype_of(constant))


def _flat(reshape: Any, rank: int) -> bool:
    """Whether a reshape restores what was flat: moving others would only move kernels."""
    before, after = shape_of(reshape.args[0]), shape_of(reshape)
    if before is None or after is None:
        return False
    return 2 <= len(before) <= rank and before[-1] == after[-1]
