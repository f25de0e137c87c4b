"""Operators on constants computed by NumPy, before TVM would compile a kernel for each of them.

TVM folds a constant by building a program for it, which takes a tenth of a second each time; a model
may have hundreds. Only operators that NumPy computes to the last bit alike are in the table, and products,
which are computed more precisely than either would.
"""

import math
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax, tvm
from tuneloom.compiler.number_types import numpy_type
from tuneloom.compiler.rewriting import name_of, shape_of
from tuneloom.compiler.summing import summing_loops, sums_in_half

_MOST_BYTES = 1 << 28
"""Larger results are left to be computed when the model runs."""

Fold = Callable[[Any, Sequence[Any]], Any]


def fold_constants(module: Any) -> Any:
    """The module with operators on constants replaced by their values.

    What the table lacks is left to TVM.
    """
    return _by_tvm(_by_numpy(module))


def _by_numpy(module: Any) -> Any:
    """Only a `main` that is one dataflow block is changed."""
    bindings = _bindings(module["main"])
    known = _known(bindings) if bindings is not None else {}
    return _replaced(module, known) if known else module


def _bindings(main: Any) -> Sequence[Any] | None:
    """The bindings of a function that is one dataflow block; None for any other."""
    blocks = main.body.blocks if isinstance(main.body, relax.SeqExpr) else []
    plain = len(blocks) == 1 and isinstance(blocks[0], relax.DataflowBlock)
    return list(blocks[0].bindings) if plain else None


def _by_tvm(module: Any) -> Any:
    """TVM's pass legalises every operator that it sees, so it gets only those which depend on no input."""
    bindings = _bindings(module["main"])
    if bindings is None:
        return relax.transform.FoldConstant()(module)
    alone: dict[Any, Any] = {}
    for binding in bindings:
        value = binding.value
        if isinstance(value, relax.Call) and all(_is_known(argument, alone) for argument in value.args):
            alone[binding.var] = binding
    fields = [var for var in alone if isinstance(var, relax.DataflowVar)]
    if not fields:
        return module
    values = _computed(module, list(alone.values()), relax.Tuple(fields))
    known = {
        var: one for var, one in zip(fields, values, strict=True) if isinstance(one, tvm.ir.GenericConst)
    }
    return _replaced(module, known) if known else module


def _computed(module: Any, bindings: Sequence[Any], results: Any) -> Sequence[Any]:
    """What TVM's pass makes of variables that depend on no input."""
    every = relax.Var("every", relax.TupleType([one.ty for one in results.fields]))
    block = relax.DataflowBlock([*bindings, relax.VarBinding(every, results)])
    main = relax.Function([], relax.SeqExpr([block], every), every.ty)
    gvar = module.get_global_var("main")
    alone = type(module)({**dict(module.functions.items()), gvar: main})
    if any(sums_in_half(binding.value) for binding in bindings):
        alone = relax.transform.LegalizeOps(summing_loops())(alone)
    folded = relax.transform.FoldConstant()(alone)
    fields: Sequence[Any] = folded["main"].body.blocks[0].bindings[-1].value.fields
    return fields


def _is_known(argument: Any, found: Container[Any]) -> bool:
    if isinstance(argument, relax.Tuple):
        return all(_is_known(field, found) for field in argument.fields)
    if isinstance(argument, relax.Var):
        return argument in found
    return isinstance(argument, (tvm.ir.Constant, tvm.ir.GenericConst, relax.ShapeExpr, tvm.ir.GlobalVar))


def _known(bindings: Sequence[Any]) -> dict[Any, Any]:
    """Variables whose value is known, with it as a constant."""
    found: dict[Any, Any] = {}
    for binding in bindings:
        if isinstance(binding.value, tvm.ir.GenericConst) and isinstance(binding.var, relax.DataflowVar):
            found[binding.var] = binding.value
            continue
        if not isinstance(binding.value, relax.Call):
            continue
        shape = _shape(binding.value)
        if shape is not None:
            found[binding.var] = shape
            continue
        value = _value(binding.value, found)
        if value is not None and isinstance(binding.var, relax.DataflowVar):
            found[binding.var] = relax.const(np.asarray(value, order="C"), str(value.dtype))
    return found


def _shape(call: Any) -> Any | None:
    """The shape that a call asks for, if the tensor has no open dimension."""
    extents = shape_of(call.args[0]) if name_of(call) == "shape_of" else None
    return None if extents is None else relax.ShapeExpr(extents)


def _value(call: Any, known: dict[Any, Any]) -> Any | None:
    """The result of a call; None when an operand is not known or the operator not in the table."""
    fold = FOLDS.get(str(getattr(call.op, "name", "")))
    if fold is None or _bytes(call) > _MOST_BYTES:
        return None
    operands = [_operand(argument, known) for argument in call.args]
    if any(operand is None for operand in operands):
        return None
    value = np.asarray(fold(call.attrs, operands))
    wanted = (tuple(int(extent) for extent in call.ty.shape.values), str(call.ty.dtype))
    return value if (value.shape, str(value.dtype)) == wanted else None


def _bytes(call: Any) -> float:
    """The size of a result; beyond all limits if its shape is open."""
    extents = shape_of(call)
    return math.inf if extents is None else math.prod(extents) * 8


def _operand(argument: Any, known: dict[Any, Any]) -> Any | None:
    """An array for a tensor, a tuple of numbers for a shape, a list for a tuple of tensors."""
    if isinstance(argument, relax.Var):
        argument = known.get(argument)
    if isinstance(argument, tvm.ir.GenericConst):
        return _array(argument)
    if isinstance(argument, tvm.ir.Constant):
        return int(argument.value)  # a place in a slice
    if isinstance(argument, relax.ShapeExpr):
        extents = [extent.value for extent in argument.values if hasattr(extent, "value")]
        return tuple(map(int, extents)) if len(extents) == len(argument.values) else None
    if isinstance(argument, relax.Tuple):
        fields = [_operand(field, known) for field in argument.fields]
        return None if any(field is None for field in fields) else fields
    return None


def _array(constant: Any) -> Any | None:
    """An array; in bfloat16 NumPy rounds every result to even as TVM does, 8-bit types are left to TVM."""
    return None if "float8" in str(constant.value.dtype) else constant.value.numpy()


def _replaced(module: Any, known: dict[Any, Any]) -> Any:
    """The module with these variables gone and constants in their places."""
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Filler(PyExprMutator):  # type: ignore[misc]
        """Puts constants where variables were, and leaves out what made them."""

        def visit_var_binding_(self, binding: Any) -> None:
            if binding.var not in known:
                super().visit_var_binding_(binding)

        def visit_var_(self, var: Any) -> Any:
            return known[var] if var in known else super().visit_var_(var)

        def visit_dataflow_var_(self, var: Any) -> Any:
            return known[var] if var in known else super().visit_dataflow_var_(var)

    changed = module.clone() if hasattr(module, "clone") else type(module)(dict(module.functions.items()))
    changed["main"] = Filler(changed).visit_expr(module["main"])
    assert isinstance(changed["main"], relax.Function)
    return changed


def _turned(attrs: Any, operands: Sequence[Any]) -> Any:
    axes = None if attrs.axes is None else [int(axis) for axis in attrs.axes]
    return np.transpose(operands[0], axes)


def _squeezed(attrs: Any, operands: Sequence[Any]) -> Any:
    axes = None if attrs.axis is None else tuple(int(axis) for axis in attrs.axis)
    return np.squeeze(operands[0], axes)


def _joined(attrs: Any, operands: Sequence[Any]) -> Any:
    axis = 0 if attrs.axis is None else int(attrs.axis)
    return np.concatenate(operands[0], axis)


def _cast(attrs: Any, operands: Sequence[Any]) -> Any:
    """Only between types where rounding is no question: wider ones, whole numbers, or to even."""
    value, kind = operands[0], numpy_type(str(attrs.dtype))
    whole = value.dtype.kind in "iub" and kind.kind in "iub"
    halved = value.dtype == np.float32 and str(kind) in ("float16", "bfloat16")
    with np.errstate(over="ignore"):
        return value.astype(kind) if whole or halved or np.can_cast(value.dtype, kind) else value


def _taken(attrs: Any, operands: Sequence[Any]) -> Any:
    """Elements by their places; TVM's modes differ only for places that are not there."""
    data, places = operands
    axis = None if attrs.axis is None else int(attrs.axis)
    size = data.size if axis is None else data.shape[axis]
    inside = places.size == 0 or (places.min() >= 0 and places.max() < size)
    return np.take(data, places, axis) if inside else data.reshape(-1)[:0]


def _sliced(attrs: Any, operands: Sequence[Any]) -> Any:
    """A slice forwards; places count from the end where they are negative, as in Python."""
    data, axes, begins, ends = operands[:4]
    steps = operands[4] if len(operands) > 4 else [1] * len(axes)
    places = [slice(None)] * data.ndim
    for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True):
        if step <= 0:
            return data.reshape(-1)[:0]
        places[axis] = slice(begin, end, step)
    return data[tuple(places)]


def _scattered(attrs: Any, operands: Sequence[Any]) -> Any:
    data, part, begin, end, step = operands
    places = [slice(None)] * data.ndim
    places[int(attrs.axis)] = slice(begin, end, step)
    result = data.copy()
    result[tuple(places)] = part
    return result


def _filled(attrs: Any, operands: Sequence[Any]) -> Any:
    return np.full(operands[0], operands[1], dtype=str(attrs.dtype or operands[1].dtype))


def _product(attrs: Any, operands: Sequence[Any]) -> Any:
    """Summed in double precision and rounded once, so it is the same everywhere; other types are TVM's."""
    if any(one.dtype != np.float32 for one in operands):
        return operands[0]
    with np.errstate(all="ignore"):
        return np.matmul(operands[0], operands[1], dtype=np.float64).astype(np.float32)


def _root(_attrs: Any, operands: Sequence[Any]) -> Any:
    with np.errstate(invalid="ignore"):
        return np.sqrt(operands[0])


def _arithmetic(compute: Callable[[Any, Any], Any]) -> Fold:
    def fold(_attrs: Any, operands: Sequence[Any]) -> Any:
        with np.errstate(all="ignore"):
            return compute(operands[0], operands[1])

    return fold


_ALIKE = (
    *("add", "subtract", "multiply", "minimum", "maximum", "floor_divide", "logical_and", "logical_or"),
    *("less", "greater", "less_equal", "greater_equal", "equal", "not_equal"),
)
"""Operators of two operands that NumPy has under the same names."""

FOLDS: dict[str, Fold] = {
    "relax.permute_dims": _turned,
    "relax.reshape": lambda attrs, operands: np.reshape(operands[0], operands[1]),
    "relax.broadcast_to": lambda attrs, operands: np.broadcast_to(operands[0], operands[1]),
    "relax.expand_dims": lambda attrs, operands: np.expand_dims(
        operands[0], tuple(int(axis) for axis in attrs.axis)
    ),
    "relax.squeeze": _squeezed,
    "relax.take": _taken,
    "relax.strided_slice": _sliced,
    "relax.slice_scatter": _scattered,
    "relax.where": lambda attrs, operands: np.where(*operands),
    "relax.concat": _joined,
    "relax.astype": _cast,
    "relax.arange": lambda attrs, operands: np.arange(*operands, dtype=str(attrs.dtype)),
    "relax.full": _filled,
    "relax.shape_to_tensor": lambda attrs, operands: np.array(operands[0], np.int64),
    "relax.matmul": _product,
    "relax.sqrt": _root,
    "relax.negative": lambda attrs, operands: np.negative(operands[0]),
    "relax.mod": _arithmetic(np.fmod),
    "relax.floor_mod": _arithmetic(np.mod),
    **{f"relax.{name}": _arithmetic(getattr(np, name)) for name in _ALIKE},
}
"""A result of another type or shape than TVM says is not used, so a fold may give up by returning it."""
