"""Operators that read their operands in place: views before them become part of their kernel.

A slice or a transposition costs a kernel that copies. Where somebody makes code that reads through it, the
operator and its views are one kernel, made before TVM fuses the rest.
"""

from typing import Any

from tuneloom.backends.finding import backend_of
from tuneloom.backends.implementers import ModelKernel
from tuneloom.backends.meaning import VIEWS, Meaning
from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.meanings import Meanings


def reading_in_place(module: Any, meanings: Meanings, target: TargetSpec) -> Any:
    """The module with operators and the views before them as one kernel, where an implementer takes that."""
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    readers = backend_of(target).readers_in_place
    made = {one.var: one.value for block in module["main"].body.blocks for one in block.bindings}

    @mutator
    class Grouping(PyExprMutator):  # type: ignore[misc]
        """Puts calls of grouped kernels in the place of calls of single ones."""

        def visit_call_(self, call: Any) -> Any:
            group = _Group(call, made, meanings) if meanings.operator_of(call) in readers else None
            if group is None or not group.views or not _taken(group.function, meanings, target):
                return super().visit_call_(call)
            kernel = self.builder_.add_func(group.function, f"fused_{call.args[0].name_hint}")
            return relax.Call(kernel, [self.visit_expr(one) for one in group.sources])

    changing = Grouping(module)
    for gvar, function in module.functions.items():
        if gvar.name_hint == "main" and readers:
            changing.builder_.update_func(gvar, changing.visit_expr(function))
    return changing.builder_.get()


def _taken(function: Any, meanings: Meanings, target: TargetSpec) -> bool:
    meaning: Meaning | None = meanings.of_calls(function)
    kernel = None if meaning is None else ModelKernel(module=None, meaning=meaning, target=target)
    return kernel is not None and any(True for _ in claims_on(kernel))


class _Group:
    """An operator with the views before it; `sources` are what the views read."""

    def __init__(self, call: Any, made: dict[Any, Any], meanings: Meanings) -> None:
        self._made, self._meanings = made, meanings
        self.views = 0
        self.sources: list[Any] = []
        self._calls: list[tuple[Any, Any]] = []
        self._inside: dict[Any, Any] = {}
        self._result = self._copied(call, "result", last=True)

    def _copied(self, call: Any, name: str, *, last: bool = False) -> Any:
        """A variable of the group for a call, after those for its operands."""
        from tvm import relax

        arguments = relax.Tuple([self._read(one) for one in call.args[1].fields])
        kind = relax.Var if last else relax.DataflowVar
        copy = kind(name, call.ty)
        self._calls.append((copy, _changed(call, arguments)))
        return copy

    def _read(self, value: Any) -> Any:
        """A value inside of the group: a view of a source, or a parameter."""
        from tvm import relax

        bound = self._made.get(value) if isinstance(value, relax.Var) else None
        if self._meanings.operator_of(bound) in VIEWS:
            if value not in self._inside:
                self.views += 1
                self._inside[value] = self._copied(bound, f"view{self.views}")
            return self._inside[value]
        if value not in self._inside:
            self._inside[value] = relax.Var(f"p{len(self.sources)}", value.ty)
            self.sources.append(value)
        return self._inside[value]

    @property
    def function(self) -> Any:
        """The group as a function that counts as one kernel."""
        from tvm import relax

        bindings = [relax.VarBinding(*pair) for pair in self._calls]
        body = relax.SeqExpr([relax.DataflowBlock(bindings)], self._result)
        params = [self._inside[one] for one in self.sources]
        made = relax.Function(params, body, self._result.ty, is_pure=True)
        return made.with_attr("Primitive", 1)


def _changed(call: Any, arguments: Any) -> Any:
    from tvm import relax

    return relax.Call(call.op, [call.args[0], arguments], call.attrs, call.ty_args)
