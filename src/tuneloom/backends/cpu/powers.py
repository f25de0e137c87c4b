"""Powers with a small constant exponent, as products: the C library's `pow` uses one lane."""

from typing import Any

import numpy as np

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import ir, relax

SPELLED = (0.25, 0.5, 0.75, 2.0, 3.0, 4.0)


def spell_out_powers(module: Any) -> Any:
    """Replace squares, cubes, fourth powers and roots of roots that are written as powers."""
    load_tvm()
    from tvm.relax.expr_functor import PyExprMutator, mutator

    power = ir.Op.get("relax.power")

    @mutator
    class Spelling(PyExprMutator):  # type: ignore[misc]
        """Looks at every call."""

        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            exponent = _exponent(self, *call.args) if call.op == power else None
            return call if exponent is None else self._spelled(call, exponent)

        def _spelled(self, call: Any, exponent: float) -> Any:
            base = call.args[0]
            if exponent < 1:
                return self._roots(base, exponent)
            square = relax.op.multiply(base, base)
            if exponent == 2:
                return square
            square = self.builder_.emit(square)
            return relax.op.multiply(square, base if exponent == 3 else square)

        def _roots(self, base: Any, exponent: float) -> Any:
            root = relax.op.sqrt(base)
            if exponent == 0.5:
                return root
            root = self.builder_.emit(root)
            fourth = relax.op.sqrt(root)
            return fourth if exponent == 0.25 else relax.op.multiply(root, self.builder_.emit(fourth))

    spelling = Spelling(module)
    for name, function in module.functions.items():
        if isinstance(function, relax.Function):
            spelling.builder_.update_func(name, spelling.visit_expr(function))
    return spelling.builder_.get()


def _exponent(spelling: Any, base: Any, argument: Any) -> float | None:
    """The exponent if it is one number that can be spelled out and adds no axes."""
    if isinstance(argument, relax.Var):
        argument = spelling.lookup_binding(argument)
    if not isinstance(argument, ir.GenericConst) or "bfloat16" in str(argument.value.dtype):
        return None
    value: Any = argument.value.numpy()
    known = value.size == 1 and value.ndim <= base.ty.ndim and np.issubdtype(value.dtype, np.floating)
    return float(value.item()) if known and value.item() in SPELLED else None
