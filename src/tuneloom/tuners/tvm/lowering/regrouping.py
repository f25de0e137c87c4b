"""Tensors that are cut into equal parts and put together along another axis: views, not copies of parts.

A kernel that joins parts asks for each value which part it comes from. Where joins follow each other, each
asks for all that the one before asks for, and a kernel of two takes minutes to schedule.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tuneloom.compiler.lazy import relax

_SPLIT, _JOIN = "relax.split", "relax.concat"


def regrouped(module: Any) -> Any:
    """The module with what joins all parts of a split, in their order, as reshapes and a transposition."""
    from tvm.relax.expr_functor import PyExprMutator, mutator

    made = _bindings(module["main"])
    if not any(_name(value) == _JOIN for value in made.values()):
        return module

    @mutator
    class Regrouper(PyExprMutator):  # type: ignore[misc]
        """Puts views in place of joins."""

        def visit_call_(self, call: Any) -> Any:
            whole = _whole(call, made)
            if whole is None:
                return super().visit_call_(call)
            return self._viewed(self.visit_expr(whole), made[_parts(call, made)[0].tuple_value], call)

        def _viewed(self, value: Any, split: Any, join: Any) -> Any:
            shape, rank = _shape(value), len(_shape(join))
            before, after = int(split.attrs.axis) % rank, int(join.attrs.axis) % rank
            count = _shape(join)[after] // shape[after] if before != after else 1
            if count == 1:
                return value
            apart = [*shape[:before], count, shape[before] // count, *shape[before + 1 :]]
            axes = [axis for axis in range(rank + 1) if axis != before]
            axes.insert(axes.index(after if after < before else after + 1), before)
            emit = self.builder_.emit
            turned = emit(relax.op.permute_dims(emit(relax.op.reshape(value, apart)), axes))
            return relax.op.reshape(turned, _shape(join))

    changed = module.clone()
    changed["main"] = Regrouper(changed).visit_expr(module["main"])
    return changed


def _bindings(main: Any) -> Mapping[Any, Any]:
    return {binding.var: binding.value for block in main.body.blocks for binding in block.bindings}


def _whole(call: Any, made: Mapping[Any, Any]) -> Any | None:
    """What a join puts together again: all equal parts of it, in their order; None for other calls."""
    parts = _parts(call, made) if _name(call) == _JOIN else []
    if not parts or any(not isinstance(part, relax.TupleGetItem) for part in parts):
        return None
    split: Any = made.get(parts[0].tuple_value)
    same = all(part.tuple_value.same_as(parts[0].tuple_value) for part in parts)
    if not same or _name(split) != _SPLIT or [int(part.index) for part in parts] != [*range(len(parts))]:
        return None
    shapes = {tuple(_shape_of(field) or ()) for field in split.ty.fields}
    complete = len(split.ty.fields) == len(parts) and len(shapes) == 1 and () not in shapes
    return split.args[0] if complete and _shape_of(split.args[0].ty) is not None else None


def _parts(join: Any, made: Mapping[Any, Any]) -> Sequence[Any]:
    """What made the tensors that are joined."""
    joined = join.args[0]
    joined = made.get(joined) if isinstance(joined, relax.Var) else joined
    return [made.get(field) for field in joined.fields] if isinstance(joined, relax.Tuple) else []


def _name(value: Any) -> str:
    return str(getattr(value.op, "name", "")) if isinstance(value, relax.Call) else ""


def _shape(value: Any) -> list[int]:
    found = _shape_of(value.ty)
    assert found is not None
    return found


def _shape_of(kind: Any) -> list[int] | None:
    """The extents of a tensor; None if one is open."""
    extents = getattr(getattr(kind, "shape", None), "values", None)
    if extents is None or any(not hasattr(extent, "value") for extent in extents):
        return None
    return [int(extent) for extent in extents]
