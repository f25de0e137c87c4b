"""How much memory the values of a model need on its device, beside its weights."""

from math import prod
from typing import Any

from tuneloom.compiler.lazy import relax, tvm
from tuneloom.tuners.tvm.lowering.tasks import vanishing


def activation_bytes(module: Any) -> int:
    """What inputs, outputs and values between them take where most is needed at once; 0 for open sizes.

    A value is kept from the kernel that makes it to the last one that reads it, inputs and outputs to the
    end. Views and tuples take nothing. Whoever plans memory can't need less.
    """
    main, views = module["main"], vanishing(module)
    bindings = [binding for block in main.body.blocks for binding in block.bindings]
    values = {var: frozenset((var,)) for var in main.params}
    last_read = dict.fromkeys(main.params, len(bindings))
    for number, binding in enumerate(bindings):
        read = frozenset().union(*(values.get(var, frozenset()) for var in _variables(binding.value)))
        last_read |= dict.fromkeys(read - frozenset(main.params), number)
        values[binding.var] = frozenset((binding.var,)) if _makes(binding.value, views) else read
    last_read |= {one: len(bindings) for var in _variables(main.body.body) for one in values.get(var, ())}
    return _most(main.params, bindings, last_read)


def _most(params: Any, bindings: list[Any], last_read: dict[Any, int]) -> int:
    held = most = sum(_bytes(var.ty) for var in params)
    freed: dict[int, int] = {}
    for number, binding in enumerate(bindings):
        if binding.var in last_read:
            size = _bytes(binding.var.ty)
            held, last = held + size, last_read[binding.var]
            freed[last] = freed.get(last, 0) + size
        most = max(most, held)
        held -= freed.pop(number, 0)
    return most


def _makes(value: Any, views: set[str]) -> bool:
    """Whether a value has memory of its own."""
    if not isinstance(value, relax.Call):
        return not isinstance(value, (relax.Tuple, relax.TupleGetItem, relax.Var))
    return getattr(value.op, "name", "") != "relax.call_tir" or str(value.args[0].name_hint) not in views


def _variables(value: Any) -> list[Any]:
    found: list[Any] = []
    relax.analysis.post_order_visit(
        value, lambda node: found.append(node) if isinstance(node, relax.Var) else None
    )
    return found


def _bytes(kind: Any) -> int:
    if isinstance(kind, relax.TupleType):
        return sum(map(_bytes, kind.fields))
    if not isinstance(kind, relax.TensorType) or kind.shape is None:
        return 0
    elements = prod(int(getattr(extent, "value", 0)) for extent in getattr(kind.shape, "values", (None,)))
    return elements * ((int(tvm.DataType(str(kind.dtype)).bits) + 7) // 8)
