"""What fused kernels compute, read off while they are still calls of single operators.

Legalising turns operators into loops; here it notes which operator became which function. After
fusing, and before the loops are joined, a fused kernel is a Relax function that calls these.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tuneloom.backends.meaning import Meaning, MeaningStep, TensorType
from tuneloom.compiler.lazy import ir, relax
from tuneloom.compiler.passes import own_pass
from tuneloom.tuners.tvm.importing.recurrence.cells import cells_in
from tuneloom.tuners.tvm.importing.recurrence.meaning import meaning_of

Legaliser = Callable[[Any, Any], Any]
_NAMED_ARGUMENTS = {
    "relax.clip": ("", "min", "max"),
    "relax.strided_slice": ("", "axes", "begin", "end", "strides"),
}
_SKIPPED = frozenset(("relax.call_tir", "relax.call_dps_packed"))


class Meanings:
    """Watches one module being lowered; `known` has the meaning of each kernel by its name then."""

    def __init__(self) -> None:
        self.known: dict[str, Meaning] = {}
        self._operators: dict[str, Any] = {}

    def watching(self, own: Mapping[str, Legaliser]) -> dict[str, Legaliser]:
        """All of TVM's ways to legalise, and these instead of some of them, with a note of what was made."""
        names = {str(name) for name in ir.Op.list_op_names() if str(name).startswith("relax.")} - _SKIPPED
        found = {name: own.get(name) or ir.Op.get(name).get_attr("FLegalize") for name in sorted(names)}
        return {name: self._noting(one) for name, one in found.items() if one is not None}

    def _noting(self, legalise: Legaliser) -> Legaliser:
        def noting(builder: Any, call: Any) -> Any:
            made = legalise(builder, call)
            if getattr(getattr(made, "op", None), "name", "") == "relax.call_tir":
                self._operators[str(made.args[0].name_hint)] = _Operator(call, made)
            return made

        return noting

    def reading(self) -> Any:
        """The pass that reads meanings, to stand between FuseOps and FuseTIR."""

        def read(module: Any) -> Any:
            self.known = dict(self._read(module))
            return module

        return own_pass("ReadMeanings", read)

    def _read(self, module: Any) -> Iterator[tuple[str, Meaning]]:
        for gvar, function in module.functions.items():
            name = str(gvar.name_hint)
            if isinstance(function, relax.Function):
                found = self.of_calls(function) if name != "main" else None
            else:
                found = self._of_one(name) or meaning_of(cells_in(function))
            if found is not None:
                yield name, found

    def operator_of(self, call: Any) -> str:
        """The operator that a call of a single kernel was legalised from; empty if that is not known."""
        operator = self._operators.get(_callee(call))
        return "" if operator is None else operator.name

    def _of_one(self, name: str) -> Meaning | None:
        operator = self._operators.get(name)
        if operator is None or operator.inputs is None:
            return None
        return _assembled(list(operator.inputs), [(operator, list(range(len(operator.inputs))))])

    def of_calls(self, function: Any) -> Meaning | None:
        """The meaning of a function that calls single kernels."""
        places = {param: number for number, param in enumerate(function.params)}
        inputs = [_type_of(param) for param in function.params]
        calls: list[tuple[_Operator, list[int]]] = []
        for block in function.body.blocks:
            for binding in block.bindings:
                if binding.value in places:  # another name for the same value
                    places[binding.var] = places[binding.value]
                    continue
                operator = self._operators.get(_callee(binding.value))
                arguments = binding.value.args[1] if operator is not None else ()
                if operator is None or any(one not in places for one in arguments):
                    return None
                calls.append((operator, [places[one] for one in arguments]))
                places[binding.var] = len(inputs) + len(calls) - 1
        if None in inputs or places.get(function.body.body) != len(inputs) + len(calls) - 1:
            return None
        return _assembled([one for one in inputs if one is not None], calls)


def marked(
    module: Any,
    meanings: Mapping[str, Meaning],
    attributes: Callable[[Meaning, MeaningStep], Mapping[str, Any]],
) -> tuple[Any, Mapping[str, Meaning]]:
    """Kernels with further attributes of their steps, which tell their keys from those of others."""
    further = {name: [attributes(one, step) for step in one.steps] for name, one in meanings.items()}
    changed = {name: found for name, found in further.items() if any(found)}
    if not changed:
        return module, meanings
    functions = {
        gvar: function.with_attr({key: value for each in changed[name] for key, value in each.items()})
        if (name := str(gvar.name_hint)) in changed
        else function
        for gvar, function in module.functions.items()
    }
    known = {name: _marked(meanings[name], found) for name, found in changed.items()}
    return type(module)(functions, attrs=module.attrs), {**meanings, **known}


def _marked(meaning: Meaning, further: Sequence[Mapping[str, Any]]) -> Meaning:
    pairs = zip(meaning.steps, further, strict=True)
    steps = (replace(step, attributes={**step.attributes, **more}) for step, more in pairs)
    return replace(meaning, steps=tuple(steps))


class _Operator:
    """One operator as it was legalised: where its operands come from among the arguments of the loops."""

    def __init__(self, call: Any, made: Any) -> None:
        arguments = list(made.args[1])
        types = [_type_of(one) for one in arguments]
        self.name = str(call.op.name)
        self.inputs = None if None in types else [one for one in types if one is not None]
        self.result = _type_of(call)
        self.attributes = _attributes(call)
        self.operands = [_operand(one, arguments) for one in _tensors(call.args)]


def _assembled(inputs: list[TensorType], calls: list[tuple[_Operator, list[int]]]) -> Meaning | None:
    """Steps in order; constants that were written into the loops become steps of their own."""
    steps: list[MeaningStep] = []
    where = list(range(len(inputs)))
    for operator, arguments in calls:
        operands = []
        for operand in operator.operands:
            if operand is None:
                return None
            if isinstance(operand, MeaningStep):
                steps.append(operand)
                operands.append(len(inputs) + len(steps) - 1)
            else:
                operands.append(where[arguments[operand]])
        if operator.result is None:
            return None
        steps.append(
            MeaningStep(
                operator=operator.name,
                operands=tuple(operands),
                attributes=operator.attributes,
                result=operator.result,
            )
        )
        where.append(len(inputs) + len(steps) - 1)
    return Meaning(inputs=tuple(inputs), steps=tuple(steps), outputs=(where[-1],))


def _operand(value: Any, arguments: list[Any]) -> int | MeaningStep | None:
    """The argument of the loops that an operand became, or the constant that was written into them."""
    place = next((n for n, one in enumerate(arguments) if one.same_as(value)), None)
    if place is not None:
        return place
    content = getattr(value, "value", None)
    if content is None or not hasattr(content, "numpy") or content.numpy().size != 1:
        return None
    array = content.numpy()
    result = TensorType(shape=tuple(array.shape), dtype=str(array.dtype))
    return MeaningStep(operator="relax.const", operands=(), attributes={"value": array.item()}, result=result)


def _callee(value: Any) -> str:
    named = getattr(getattr(value, "op", None), "name", "") == "relax.call_tir"
    return str(value.args[0].name_hint) if named else ""


def _tensors(arguments: Any) -> Iterator[Any]:
    """The arguments that are tensors, those of a tuple one by one; a tuple from elsewhere stays one."""
    from tvm import relax

    for one in arguments:
        if isinstance(one, relax.Tuple):
            yield from _tensors(one.fields)
        elif _is_tensor(one) or isinstance(one.ty, relax.TupleType):
            yield one


def _is_tensor(value: Any) -> bool:
    return isinstance(getattr(value, "ty", None), relax.TensorType)


def _type_of(value: Any) -> TensorType | None:
    """The type of a tensor whose shape is known; None for anything else."""
    if not _is_tensor(value):
        return None
    shape = getattr(value.ty.shape, "values", None)
    if shape is None or any(not hasattr(extent, "value") for extent in shape):
        return None
    return TensorType(shape=tuple(int(extent.value) for extent in shape), dtype=str(value.ty.dtype))


def _attributes(call: Any) -> dict[str, Any]:
    """The attributes of an operator, and its arguments that are no tensors, as plain data."""
    info = getattr(type(call.attrs), "__tvm_ffi_type_info__", None) if call.attrs is not None else None
    found = {one.name: _plain(getattr(call.attrs, one.name)) for one in (info.fields if info else ())}
    names = _NAMED_ARGUMENTS.get(str(call.op.name), ())
    for name, value in zip(names, call.args, strict=False):
        if name:
            found[name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if hasattr(value, "fields"):
        return [_plain(one) for one in value.fields]
    if hasattr(value, "value"):
        return _plain(value.value)
    if hasattr(value, "__iter__"):
        return [_plain(one) for one in value]
    return str(value)
