"""Weights out of the program: constants become parameters, so the library stays small."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import relax, tvm

_SMALL_BYTES = 64


def split_parameters(module: Any) -> tuple[Any, list[NDArray[Any]]]:
    """`main` with its large constants as further parameters, and their values in order."""
    load_tvm()
    constants = _large_constants(module["main"])
    variables = [
        relax.Var(f"weight_{i}", relax.TensorType(constant.value.shape, str(constant.value.dtype)))
        for i, constant in enumerate(constants)
    ]
    main = _replace(module["main"], constants, variables)
    changed = {gvar: function for gvar, function in module.functions.items() if gvar.name_hint != "main"}
    changed[module.get_global_var("main")] = main
    result = type(module)(changed, attrs=module.attrs)
    return result, [np.ascontiguousarray(constant.value.numpy()) for constant in constants]


def weight_bytes(function: Any) -> int:
    """What the weights of a model take: its device has to hold at least these."""
    return sum(_bytes(constant.value) for constant in _large_constants(function))


def _large_constants(function: Any) -> list[Any]:
    found: list[Any] = []

    def visit(node: Any) -> None:
        large = isinstance(node, tvm.ir.GenericConst) and _bytes(node.value) > _SMALL_BYTES
        if large and not any(node.same_as(other) for other in found):
            found.append(node)

    relax.analysis.post_order_visit(function, visit)
    return found


def _bytes(value: Any) -> int:
    return int(value.numpy().nbytes) if hasattr(value, "numpy") else 0


def _replace(function: Any, constants: list[Any], variables: list[Any]) -> Any:
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Lifter(PyExprMutator):  # type: ignore[misc]
        """Puts a variable where a constant was."""

        def visit_generic_const_(self, node: Any) -> Any:
            for constant, variable in zip(constants, variables, strict=True):
                if node.same_as(constant):
                    return variable
            return node

    lifter = Lifter(tvm.IRModule())
    body = lifter.visit_expr(function.body)
    params = [*function.params, *variables]
    lifted = relax.Function(params, body, function.ret_ty, function.is_pure)
    return lifted.with_attrs({**dict(function.attrs or {}), "num_input": len(function.params)})
