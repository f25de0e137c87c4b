"""Products of one matrix with several weights as one product, where attention reads the parts in place.

Queries, keys and values are often three products of the same rows, each too small for a GPU.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom.backends.meaning import VIEWS
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.renewing import bindings_of
from tuneloom.compiler.rewriting import Readers, array_of, dtype_of, name_of, shape_of

_READERS = frozenset(("relax.nn.attention", "relax.nn.attention_bias"))


@dataclass(frozen=True, slots=True)
class _Product:
    """A product with constant weights, its bias and the type it is cast to; `last` is its final variable."""

    call: Any
    weight: Any
    bias: Any | None
    cast: str
    last: Any

    @property
    def kind(self) -> tuple[Any, ...]:
        """What products that become one have in common."""
        return self.call.args[0], dtype_of(self.call), str(self.weight.dtype), self.cast


def products_joined(module: Any) -> Any:
    """The module with products that only attention reads joined where they share their rows."""
    bindings = bindings_of(module)
    groups: dict[tuple[Any, ...], list[_Product]] = defaultdict(list)
    uses = _Uses(bindings)
    for binding in bindings:
        product = uses.product(binding)
        if product is not None:
            groups[product.kind].append(product)
    several = [group for group in groups.values() if len(group) > 1]
    return _rewritten(module, several) if several else module


class _Uses(Readers):
    """What is read by attention alone."""

    def product(self, binding: Any) -> _Product | None:
        """The product that a variable is bound to, if only attention reads what comes of it."""
        call = binding.value
        weight = array_of(call.args[1]) if name_of(call) == "matmul" else None
        if weight is None or weight.ndim != 2 or len(shape_of(call) or ()) != 2:
            return None
        last, bias, cast = binding.var, None, ""
        follower = self.only(last)
        if follower is not None and name_of(follower.value) == "add":
            bias = next((one for one in map(array_of, follower.value.args) if one is not None), None)
            if bias is None or bias.shape != (weight.shape[1],):
                return None
            last, follower = follower.var, self.only(follower.var)
        if follower is not None and name_of(follower.value) == "astype":
            last, cast = follower.var, dtype_of(follower.value)
        return _Product(call, weight, bias, cast, last) if self._is_attended(last) else None

    def _is_attended(self, var: Any) -> bool:
        readers = self.of(var) if isinstance(var, relax.DataflowVar) else []
        names = [f"relax.{name_of(one.value)}" for one in readers]
        return bool(readers) and all(
            name in _READERS or (name in VIEWS and self._is_attended(one.var))
            for name, one in zip(names, readers, strict=True)
        )


def _rewritten(module: Any, groups: Sequence[Sequence[_Product]]) -> Any:
    from tvm.relax.expr_functor import PyExprMutator, mutator

    first = {group[0].call: group for group in groups}
    slices: dict[Any, Any] = {}

    @mutator
    class Joining(PyExprMutator):  # type: ignore[misc]
        """Emits each joined product where its first part was, and slices of it for all."""

        def visit_var_binding_(self, binding: Any) -> None:
            group = next((each for call, each in first.items() if call.same_as(binding.value)), None)
            if group is not None:
                rows = self.visit_expr(binding.value.args[0])
                slices.update(_slices(self.builder_, rows, group))
            if binding.var not in slices:
                super().visit_var_binding_(binding)

        def visit_var_(self, var: Any) -> Any:
            return slices[var] if var in slices else super().visit_var_(var)

        def visit_dataflow_var_(self, var: Any) -> Any:
            return slices[var] if var in slices else super().visit_dataflow_var_(var)

    changing = Joining(module)
    for gvar, function in module.functions.items():
        if gvar.name_hint == "main":
            changing.builder_.update_func(gvar, changing.visit_expr(function))
    return relax.transform.DeadCodeElimination()(changing.builder_.get())


def _slices(builder: Any, rows: Any, group: Sequence[_Product]) -> dict[Any, Any]:
    """The joined product, and by their final variables the parts of it."""
    call, dtype = group[0].call, dtype_of(group[0].call)
    weight = relax.const(np.concatenate([each.weight for each in group], 1), dtype_of(call.args[1]))
    done = builder.emit(relax.op.matmul(rows, weight, out_dtype=dtype))
    known = [each.bias for each in group if each.bias is not None]
    if known:
        widths = [each.weight.shape[1] for each in group]
        biases = [
            np.zeros(width, known[0].dtype) if each.bias is None else each.bias
            for each, width in zip(group, widths, strict=True)
        ]
        done = builder.emit(relax.op.add(done, relax.const(np.concatenate(biases), dtype)))
    if group[0].cast:
        done = builder.emit(relax.op.astype(done, group[0].cast))
    found, begin = {}, 0
    for each in group:
        end = begin + each.weight.shape[1]
        found[each.last] = builder.emit(relax.op.strided_slice(done, [1], [begin], [end]))
        begin = end
    return found
