"""Reading and writing by indices as PyTorch means it: negative ones count from the end."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import shape_of

Emit = Callable[[Any], Any]


def select(emit: Emit, x: Any, axis: int, index: int) -> Any:
    """One slice along an axis, without the axis; TVM reads before the tensor for a negative index."""
    place = index if index >= 0 else index + int(x.ty.shape[axis])
    return emit(relax.op.take(x, relax.const(place, "int64"), axis))


def by_indices(emit: Emit, data: Any, indices: Sequence[Any]) -> Any:
    """`data[indices]`; None stands for a whole axis.

    Index tensors are broadcast to one shape, which takes the place of the axes they index, or comes first
    where a whole axis lies between them.
    """
    axes = [axis for axis, one in enumerate(indices) if one is not None]
    counted = [_from_the_start(emit, indices[axis], data.ty.shape[axis]) for axis in axes]
    if len(axes) == 1:
        return emit(relax.op.take(data, counted[0], axis=axes[0]))
    others = [axis for axis in range(int(data.ty.ndim)) if axis not in axes]
    moved = data if axes == list(range(len(axes))) else emit(relax.op.permute_dims(data, [*axes, *others]))
    found = emit(relax.op.index_tensor(moved, counted))
    ranks = max(int(one.ty.ndim) for one in counted)
    before = axes[0] if axes == list(range(axes[0], axes[0] + len(axes))) else 0
    if before == 0:
        return found
    order = [*range(ranks, ranks + before), *range(ranks), *range(ranks + before, int(found.ty.ndim))]
    return emit(relax.op.permute_dims(found, order))


def _from_the_start(emit: Emit, index: Any, extent: Any) -> Any:
    kind = str(index.ty.dtype)
    if not kind.startswith("int"):
        raise ValueError(f"an index of the type {kind} selects as many values as the data say")
    wrapped = emit(relax.op.add(index, relax.const(int(extent), kind)))
    return emit(relax.op.where(emit(relax.op.less(index, relax.const(0, kind))), wrapped, index))


def put_by_indices(emit: Emit, data: Any, indices: Sequence[Any], values: Any, adds: bool) -> Any:
    """`data` after `data[indices] = values`; None stands for a whole axis, a mask for where it is true."""
    if len(indices) == 1 and str(indices[0].ty.dtype) == "bool":
        return _put_where(emit, data, indices[0], values, adds)
    axes = [axis for axis, one in enumerate(indices) if one is not None]
    if axes != list(range(axes[0], axes[-1] + 1)):
        raise ValueError("writing to axes with others between them is not imported")
    ranks = max(int(indices[axis].ty.ndim) for axis in axes)
    places = []
    for axis, extent in enumerate(shape_of(data)):
        behind = len(shape_of(data)) - 1 - (axes[-1] if axes[0] <= axis <= axes[-1] else axis)
        if axis in axes:
            index = _from_the_start(emit, emit(relax.op.astype(indices[axis], "int64")), extent)
            form = [*shape_of(index), *[1] * behind]
        else:
            index = relax.const(np.arange(extent), "int64")
            form = [extent, *[1] * (behind + (ranks - len(axes) if axis < axes[0] else 0))]
        places.append(emit(relax.op.reshape(index, form)))
    values = emit(relax.op.broadcast_to(values, np.broadcast_shapes(*map(shape_of, places))))
    return emit(relax.op.index_put(data, relax.Tuple(places), values, adds))


def _put_where(emit: Emit, data: Any, mask: Any, value: Any, adds: bool) -> Any:
    if np.prod(shape_of(value)) != 1:
        raise ValueError("writing as many values as a mask is true is not imported")
    value = emit(relax.op.reshape(value, ()))
    value = emit(relax.op.add(data, value)) if adds else value
    more = list(range(int(mask.ty.ndim), int(data.ty.ndim)))
    mask = emit(relax.op.expand_dims(mask, more)) if more else mask
    return emit(relax.op.where(mask, value, data))
