"""Arguments in the types that functions in the place of kernels take."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax, tvm
from tuneloom.compiler.renewing import function_variable


def with_arguments_converted(module: Any, replaced: Mapping[str, Any]) -> Any:
    """The module with calls of these functions, by name, given what each takes.

    Constants are converted now. Anything else is converted when the model runs, by a kernel of its own.
    """
    takes = {name: [str(one.dtype) for one in function.params] for name, function in replaced.items()}
    changed = {str(call.args[0].name_hint) for call in _calls(module["main"]) if _differing(call, takes)}
    if not changed:
        return module
    callees = {name: function_variable(name, replaced[name]) for name in changed}
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Converter(PyExprMutator):  # type: ignore[misc]
        """Gives every call its arguments in the types that it takes."""

        def visit_call_(self, call: Any) -> Any:
            visited = super().visit_call_(call)
            changes = _differing(visited, takes)
            if not changes:
                return visited
            fields = list(visited.args[1].fields)
            for number, dtype in changes.items():
                fields[number] = self.converted(fields[number], dtype)
            callee = callees[str(visited.args[0].name_hint)]
            arguments = [callee, relax.Tuple(fields), *visited.args[2:]]
            return relax.Call(visited.op, arguments, visited.attrs, visited.ty_args)

        def converted(self, value: Any, dtype: str) -> Any:
            if isinstance(value, tvm.ir.GenericConst):
                return relax.const(_rounded(value.value.numpy(), dtype), dtype)
            return self.builder_.emit_te(tvm.topi.cast, value, dtype)

    converter = Converter(module)
    converter.builder_.update_func(module.get_global_var("main"), converter.visit_expr(module["main"]))
    made = converter.builder_.get()
    functions = {callees.get(str(gvar.name_hint), gvar): one for gvar, one in made.functions.items()}
    return type(module)(functions, attrs=module.attrs)


def _calls(function: Any) -> list[Any]:
    found: list[Any] = []
    relax.analysis.post_order_visit(
        function, lambda node: found.append(node) if isinstance(node, relax.Call) else None
    )
    return found


def _differing(call: Any, takes: Mapping[str, list[str]]) -> dict[int, str]:
    """The arguments of a call that have another type than the function takes, with that type."""
    if str(getattr(call.op, "name", "")) != "relax.call_tir" or str(call.args[0].name_hint) not in takes:
        return {}
    pairs = zip(call.args[1].fields, takes[str(call.args[0].name_hint)], strict=False)
    return {number: dtype for number, (one, dtype) in enumerate(pairs) if str(one.ty.dtype) != dtype}


def _rounded(array: Any, dtype: str) -> Any:
    import ml_dtypes  # which tells NumPy of bfloat16

    with np.errstate(over="ignore"):
        return array.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
