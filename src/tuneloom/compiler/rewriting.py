"""Rewriting the calls of a model one by one, each with a look at how its operands were made."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from tuneloom.compiler.lazy import relax

Lookup = Callable[[Any], Any]
"""The expression that a value is bound to; the value itself where it is none's result."""
Rule = Callable[[Any, Any, Lookup], Any | None]
"""What to put in the place of a call or a tuple's item, given a builder to emit with; None to leave it."""

UNARY = frozenset(
    (
        *("nn.gelu", "nn.gelu_tanh", "nn.relu", "nn.silu", "nn.leakyrelu", "sigmoid", "tanh", "exp", "erf"),
        *("negative", "sqrt", "rsqrt", "square", "abs", "astype", "clip"),
    )
)
"""Operators that compute each element of their result from one element."""
BINARY = frozenset(("add", "subtract", "multiply", "divide", "maximum", "minimum", "power"))
"""Operators that compute each element of their result from one of each operand."""


def rewritten(module: Any, rule: Rule) -> Any:
    """The module with the rule applied to every call of `main`, operands first; what nobody reads is gone."""
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Rewriting(PyExprMutator):  # type: ignore[misc]
        """Applies the rule after a call's operands were visited."""

        def visit_call_(self, call: Any) -> Any:
            visited = self.builder_.normalize(super().visit_call_(call))
            found = rule(self.builder_, visited, self.made)
            return visited if found is None else found

        def visit_tuple_getitem_(self, item: Any) -> Any:
            visited = self.builder_.normalize(super().visit_tuple_getitem_(item))
            found = rule(self.builder_, visited, self.made)
            return visited if found is None else found

        def made(self, value: Any) -> Any:
            while isinstance(value, relax.Var) and (bound := self.lookup_binding(value)) is not None:
                value = bound
            return value

    changing = Rewriting(module)
    for gvar, function in module.functions.items():
        if gvar.name_hint == "main":
            changing.builder_.update_func(gvar, changing.visit_expr(function))
    return relax.transform.DeadCodeElimination()(changing.builder_.get())


def name_of(value: Any) -> str:
    """The operator of a call, without `relax.`; empty for anything else."""
    return str(getattr(getattr(value, "op", None), "name", "")).removeprefix("relax.")


def shape_of(value: Any) -> tuple[int, ...] | None:
    """The shape of a tensor, where it is known."""
    return shape_of_type(getattr(value, "ty", None))


def shape_of_type(kind: Any) -> tuple[int, ...] | None:
    """The shape that a type of tensors has, where it is known."""
    extents = getattr(getattr(kind, "shape", None), "values", None)
    if extents is None or not all(hasattr(extent, "value") for extent in extents):
        return None
    return tuple(int(extent.value) for extent in extents)


def bound_of(value: Any) -> int:
    """A bound of a slice."""
    return int(getattr(value, "value", value))


def dtype_of(value: Any) -> str:
    """The number type of a tensor."""
    return str(getattr(getattr(value, "ty", None), "dtype", ""))


def constant_of(value: Any) -> float | None:
    """The number that a value is, if it is a constant of one element."""
    array = array_of(value)
    return None if array is None or array.size != 1 else float(array.reshape(()))


def array_of(value: Any) -> Any | None:
    """The elements of a constant."""
    content: Any = getattr(value, "value", None)
    return content.numpy() if hasattr(content, "numpy") else None


def number_of(value: Any, made: Lookup) -> float | None:
    """The one number that all of a tensor is; None if it is not known."""
    bound = made(value)
    name = name_of(bound)
    if name in ("zeros_like", "zeros"):
        return 0.0
    if name in ("full_like", "full"):
        return number_of(bound.args[1], made)
    if name in ("broadcast_to", "astype"):
        return number_of(bound.args[0], made)
    array = array_of(bound)
    if array is None or not array.size or not (array == array.flat[0]).all():
        return None
    return float(array.flat[0])


class Readers:
    """Who reads each variable of a program."""

    def __init__(self, bindings: Sequence[Any]) -> None:
        self._readers: dict[Any, list[Any]] = defaultdict(list)
        for binding in bindings:
            for one in relax.analysis.free_vars(binding.value):
                self._readers[one].append(binding)

    def of(self, var: Any) -> list[Any]:
        """The bindings that read a variable; none of anything else."""
        return self._readers[var] if isinstance(var, relax.Var) else []

    def only(self, var: Any) -> Any | None:
        """The one binding that reads a variable."""
        found = self.of(var)
        return found[0] if len(found) == 1 else None

    def together(self, var: Any) -> bool:
        """Whether one binding reads a variable, or slices of it that one binding reads together."""
        found = self.of(var)
        if len(found) < 2:
            return bool(found)
        behind = [self.only(one.var) for one in found if name_of(one.value) == "strided_slice"]
        return len(behind) == len(found) and behind[0] is not None and len(set(map(id, behind))) == 1
