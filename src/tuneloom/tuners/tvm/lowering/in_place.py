"""Operators that read their operands in place: views before them become part of their kernel.

A slice or a transposition costs a kernel that copies. Where somebody makes code that reads through it, the
operator and its views are one kernel, made before TVM fuses the rest. So are the elementwise operators behind
it, which TVM would not join with a kernel that is made already.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from tuneloom.backends.finding import backend_of
from tuneloom.backends.implementers import ModelKernel
from tuneloom.backends.meaning import VIEWS, Meaning, MeaningStep
from tuneloom.compiler.target import TargetSpec
from tuneloom.tuners.tvm.inserting import claims_on
from tuneloom.tuners.tvm.lowering.meanings import Meanings

_BEHIND = frozenset(
    f"relax.{name}"
    for name in (
        "add",
        "subtract",
        "multiply",
        "divide",
        "astype",
        "reshape",
        "nn.gelu",
        "nn.relu",
        "nn.silu",
    )
)
_READ = VIEWS | {"relax.concat"}
_RESHAPES = frozenset(f"relax.{name}" for name in ("reshape", "flatten", "squeeze", "expand_dims"))


def reading_in_place(module: Any, meanings: Meanings, target: TargetSpec) -> Any:
    """The module with operators and the views before them as one kernel, where an implementer takes that."""
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    backend = backend_of(target)
    groups = _groups(module["main"], meanings, backend.readers_in_place, backend.readers_of_rows)

    @mutator
    class Grouping(PyExprMutator):  # type: ignore[misc]
        """Puts calls of grouped kernels in the place of calls of single ones."""

        def visit_call_(self, call: Any) -> Any:
            found = [group for group in groups.get(call, ()) if _taken(group.function, meanings, target)]
            if not found:
                return super().visit_call_(call)
            kernel = self.builder_.add_func(found[0].function, f"fused_{found[0].name}")
            return relax.Call(kernel, [self.visit_expr(one) for one in found[0].sources])

    changing = Grouping(module)
    for gvar, function in module.functions.items():
        if gvar.name_hint == "main" and groups:
            changing.builder_.update_func(gvar, changing.visit_expr(function))
    return changing.builder_.get()


def _groups(
    main: Any, meanings: Meanings, whole: frozenset[str], rows: frozenset[str]
) -> dict[Any, list["_Group"]]:
    """Groups by the calls that they stand for, the last of each."""
    made = {one.var: one.value for block in main.body.blocks for one in block.bindings}
    behind = _Behind(main, made, meanings)
    found: dict[Any, list[_Group]] = {}
    for var, call in made.items():
        operator = meanings.operator_of(call)
        if operator in whole:
            group = _Group((var,), made, meanings, _READ)
            found[call] = [group] if group.views else []
        elif operator in rows:
            chain = (var, *(behind.of(var) if operator == "relax.matmul" else ()))
            group = _Group(chain, made, meanings, _READ)
            if group.moves_rows:
                found[made[chain[-1]]] = [group]
    return found


class _Behind:
    """The elementwise operators that follow another, each the only one that reads the one before."""

    def __init__(self, main: Any, made: Mapping[Any, Any], meanings: Meanings) -> None:
        self._meanings = meanings
        self._uses: Counter[Any] = Counter(_free(main.body.body))
        self._next: dict[Any, Any] = {}
        for var, call in made.items():
            fields = getattr(call.args[1], "fields", ()) if meanings.operator_of(call) else _free(call)
            for one in fields:
                self._uses[one] += 1
                self._next[one] = (var, call)

    def of(self, var: Any) -> list[Any]:
        """The variables that they are bound to, in order."""
        found: list[Any] = []
        while self._uses[var] == 1 and var in self._next:
            var, call = self._next[var]
            if self._meanings.operator_of(call) not in _BEHIND:
                break
            found.append(var)
        return found


def _free(value: Any) -> list[Any]:
    from tvm import relax

    return list(relax.analysis.free_vars(value))


def _taken(function: Any, meanings: Meanings, target: TargetSpec) -> bool:
    meaning: Meaning | None = meanings.of_calls(function)
    kernel = None if meaning is None else ModelKernel(module=None, meaning=meaning, target=target)
    return kernel is not None and any(True for _ in claims_on(kernel))


class _Group:
    """An operator with the views before it and operators behind it; `sources` are what all of them read.

    `chain` are the variables of the operator and of those behind it.
    """

    def __init__(
        self, chain: tuple[Any, ...], made: Mapping[Any, Any], meanings: Meanings, views: frozenset[str]
    ) -> None:
        self._made, self._meanings, self._viewing = made, meanings, views
        self._chain = dict.fromkeys(chain)
        self._behind = [made[one] for one in chain[1:]]
        self.views = 0
        self.sources: list[Any] = []
        self._calls: list[tuple[Any, Any]] = []
        self._inside: dict[Any, Any] = {}
        self.name = "_".join(str(made[one].args[0].name_hint) for one in chain)
        self._result = self._copied(made[chain[-1]], "result", last=True)

    @property
    def moves_rows(self) -> bool:
        """Whether its views change the order of rows, all of which stay in one piece."""
        meaning = self._meanings.of_calls(self.function)
        if meaning is None:
            return False
        end = next(n for n, one in enumerate(meaning.steps) if one.operator not in self._viewing)
        before = [one for one in meaning.steps[:end] if one.operator not in _RESHAPES]
        return bool(before) and all(_keeps_last(one) for one in before)

    def _copied(self, call: Any, name: str, *, last: bool = False) -> Any:
        """A variable of the group for a call, after those for its operands."""
        from tvm import relax

        arguments = relax.Tuple([self._read(one, call) for one in call.args[1].fields])
        kind = relax.Var if last else relax.DataflowVar
        copy = kind(name, call.ty)
        self._calls.append((copy, _changed(call, arguments)))
        return copy

    def _read(self, value: Any, reader: Any) -> Any:
        """A value inside of the group: what it computes, a view of a source, or a parameter."""
        from tvm import relax

        if value in self._inside:
            return self._inside[value]
        bound = self._made.get(value) if isinstance(value, relax.Var) else None
        if value in self._chain:
            self._inside[value] = self._copied(bound, f"step{len(self._calls)}")
        elif self._is_view(bound, reader):
            self.views += 1
            self._inside[value] = self._copied(bound, f"view{self.views}")
        else:
            self._inside[value] = relax.Var(f"p{len(self.sources)}", value.ty)
            self.sources.append(value)
        return self._inside[value]

    def _is_view(self, bound: Any, reader: Any) -> bool:
        """Whether a value is a view that the operator, or another view before it, reads."""
        behind = any(reader.same_as(one) for one in self._behind)
        return not behind and self._meanings.operator_of(bound) in self._viewing

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


def _keeps_last(step: MeaningStep) -> bool:
    axes, last = step.attributes.get("axes"), len(step.result.shape) - 1
    return step.operator != "relax.permute_dims" or (axes is not None and axes[-1] % (last + 1) == last)
