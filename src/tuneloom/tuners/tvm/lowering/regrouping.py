"""Tensors that are cut into equal parts and put together along another axis: views, not copies of parts.

A kernel that joins parts asks for each value which part it comes from. Where joins follow each other, each
asks for all that the one before asks for, and a kernel of two takes minutes to schedule.
"""

from typing import Any

from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import Lookup, name_of, rewritten, shape_of, shape_of_type


def parts_regrouped(module: Any) -> Any:
    """The module with what joins all parts of a split, in their order, as reshapes and a transposition."""
    bindings = [binding for block in module["main"].body.blocks for binding in block.bindings]
    values = {binding.var: binding.value for binding in bindings}
    found = any(_split(value, lambda each: values.get(each, each)) is not None for value in values.values())
    return rewritten(module, _regrouped) if found else module


def _regrouped(builder: Any, join: Any, made: Lookup) -> Any | None:
    """The view that a join amounts to; None for other expressions."""
    split = _split(join, made)
    if split is None:
        return None
    whole, count = split.args[0], len(split.ty.fields)
    shape, rank = shape_of(whole) or (), whole.ty.ndim
    cut, joined = int(split.attrs.axis) % rank, int(join.attrs.axis) % rank
    if cut == joined:
        return whole
    apart = [*shape[:cut], count, shape[cut] // count, *shape[cut + 1 :]]
    axes = [axis for axis in range(rank + 1) if axis != cut]
    axes.insert(axes.index(joined if joined < cut else joined + 1), cut)
    turned = relax.op.permute_dims(builder.emit(relax.op.reshape(whole, apart)), axes)
    return relax.op.reshape(builder.emit(turned), shape_of(join))


def _split(join: Any, made: Lookup) -> Any | None:
    """The split into equal parts of a known size that a join puts together, all in their order."""
    if name_of(join) != "concat" or join.attrs.axis is None:
        return None
    parts = [made(part) for part in getattr(made(join.args[0]), "fields", ())]
    if not parts or any(not isinstance(part, relax.TupleGetItem) for part in parts):
        return None
    split = made(parts[0].tuple_value)
    if name_of(split) != "split" or any(not made(part.tuple_value).same_as(split) for part in parts):
        return None
    shapes = {shape_of_type(kind) for kind in split.ty.fields}
    complete = [int(part.index) for part in parts] == [*range(len(split.ty.fields))]
    return split if complete and len(shapes) == 1 and None not in shapes else None
