"""Reading by indices as PyTorch means it: negative ones count from the end, several are taken together."""

from collections.abc import Callable, Sequence
from typing import Any

from tuneloom.compiler.lazy import relax

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
