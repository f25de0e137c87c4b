"""Values of Relax expressions that depend on no input."""

from typing import Any

from tuneloom.compiler.lazy import relax, tvm


def known_value(expression: Any, builder: Any) -> Any | None:
    """The value as an array; None when it depends on an input of the model."""
    plain = _resolved(expression, builder, {})
    if plain is None:
        return None
    if isinstance(plain, tvm.ir.GenericConst):
        return plain.value.numpy()
    own = relax.BlockBuilder()
    with own.function("main", []):
        own.emit_func_output(own.emit(plain))
    executable = relax.build(own.finalize(), "llvm")
    result = relax.VirtualMachine(executable, tvm.cpu())["main"]()
    return result.numpy()


def _resolved(expression: Any, builder: Any, seen: dict[Any, Any]) -> Any | None:
    """The expression without variables; None where one stands for an input. Variables are resolved once."""
    if isinstance(expression, (tvm.ir.Constant, tvm.ir.GenericConst, relax.ShapeExpr)):
        return expression
    if isinstance(expression, relax.Var):
        if expression not in seen:
            bound = builder.lookup_binding(expression)
            seen[expression] = None if bound is None else _resolved(bound, builder, seen)
        return seen[expression]
    if isinstance(expression, relax.Tuple):
        fields = [_resolved(field, builder, seen) for field in expression.fields]
        return None if any(field is None for field in fields) else relax.Tuple(fields)
    if isinstance(expression, relax.TupleGetItem):
        inner = _resolved(expression.tuple_value, builder, seen)
        return None if inner is None else relax.TupleGetItem(inner, expression.index)
    if isinstance(expression, relax.Call):
        arguments = [_resolved(argument, builder, seen) for argument in expression.args]
        if any(argument is None for argument in arguments):
            return None
        return relax.Call(expression.op, arguments, expression.attrs, expression.ty_args)
    return None
