"""Emits the rewritten program: what every variable of the old one has become."""

from collections.abc import Callable, Sequence
from typing import Any

from tuneloom.backends.cpu.layouts.convolutions import Convolutions
from tuneloom.backends.cpu.layouts.shapes.values import Array, Value
from tuneloom.compiler.lazy import relax, tvm
from tuneloom.compiler.rewriting import shape_of

Rule = Callable[["Rewriter", Any, Any], bool]
"""Rewrites what a variable is bound to; returns False when it does not apply."""


class Rewriter(Convolutions):
    """State of one rewriting."""

    def __init__(
        self,
        builder: Any,
        lanes: int,
        uses: dict[Any, int],
        made: dict[Any, Any] | None = None,
        dots: str = "",
        whole: str = "",
        *,
        pairs: bool = False,
        tiles: frozenset[str] = frozenset(),
        block: int = 0,
    ) -> None:
        super().__init__(builder, lanes, block=block, pairs=pairs, tiles=tiles)
        self.dots = dots
        self.whole = whole
        self._made = made or {}
        self.tuples: dict[Any, list[Value]] = {}
        self._uses = uses
        self._values: dict[Any, Value] = {}

    def value(self, expression: Any) -> Value:
        """What an operand is now; parameters and constants are plain."""
        if expression in self._values:
            return self._values[expression]
        return Value(shape=shape_of(expression) or (), plain=expression)

    def bind(self, var: Any, value: Value) -> None:
        """Let a variable of the old program stand for this value."""
        self._values[var] = value

    def bind_tuple(self, var: Any, parts: list[Value]) -> None:
        """Let a variable stand for several values; those never read may be missing."""
        self.tuples[var] = parts

    def read_once(self, expression: Any) -> bool:
        """Whether nobody else reads this variable."""
        return self._uses.get(expression, 0) == 1

    def made_by(self, expression: Any, name: str) -> Any | None:
        """The call that makes this value in the old program, if it is one of this operator."""
        call = self._made.get(expression)
        found = getattr(getattr(call, "op", None), "name", "")
        return call if found == f"relax.{name}" else None

    def keep(self, var: Any, expression: Any) -> None:
        """Emit an operator as it was, on plain operands."""
        emitted = self._builder.emit(self.plain_tree(expression))
        self.bind(var, Value(shape=shape_of(var) or (), plain=emitted))

    def plain_tree(self, expression: Any) -> Any:
        """An expression with every variable in its plain form."""
        from tvm.relax.expr_functor import PyExprMutator, mutator

        outer = self

        @mutator
        class Plainer(PyExprMutator):  # type: ignore[misc]
            """Looks variables up."""

            def visit_var_(self, var: Any) -> Any:
                return outer.plain(outer._values[var]) if var in outer._values else var

            def visit_dataflow_var_(self, var: Any) -> Any:
                return self.visit_var_(var)

        if isinstance(expression, relax.Var):
            return self.plain(self.value(expression))
        return Plainer(tvm.IRModule()).visit_expr(expression)

    def with_args(self, call: Any, arguments: Sequence[Any]) -> Any:
        """The same operator on other operands."""
        rest = list(call.args)[len(arguments) :]
        return relax.Call(call.op, [*arguments, *rest], call.attrs)

    def emit_blocked(self, var: Any, expression: Any) -> None:
        """Emit an operator whose result is blocked."""
        emitted = self._builder.emit(expression)
        self.bind(var, Value(shape=shape_of(var) or (), blocked=emitted))

    def emit_kernel(
        self, var: Any, make: Callable[..., Any], arguments: list[Any], name: str, **options: Any
    ) -> None:
        """Emit one of our kernels whose result is blocked."""
        emitted = self.kernel(make, arguments, name, **options)
        self.bind(var, Value(shape=shape_of(var) or (), blocked=emitted))

    def emit_plain(
        self, var: Any, make: Callable[..., Any], arguments: list[Any], name: str, **options: Any
    ) -> None:
        """Emit one of our kernels whose result is plain."""
        self.bind_plain(var, self.kernel(make, arguments, name, **options))

    def bind_plain(self, var: Any, emitted: Any) -> None:
        """Let a variable of the old program stand for something plain."""
        self.bind(var, Value(shape=shape_of(var) or (), plain=emitted))

    def scaled(self, value: Value, scale: Array, shift: Array) -> Value:
        """A blocked value times one number a channel, plus another."""
        grown = relax.op.multiply(self.blocked(value), self.channel_constant(scale, 0.0))
        moved = relax.op.add(self._builder.emit(grown), self.channel_constant(shift, 0.0))
        return Value(shape=value.shape, blocked=self._builder.emit(moved))
