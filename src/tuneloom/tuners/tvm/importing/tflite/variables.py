"""Variables of a TensorFlow Lite graph: each becomes an input that is read and an output that follows it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.importing.relax import KeptValue
from tuneloom.tuners.tvm.importing.tflite.known_values import known_value
from tuneloom.tuners.tvm.importing.tflite.operators import kind_of


def has_variables(model: Any, where: str) -> bool:
    """Whether a model keeps something from run to run; raises ModelError for what can't be an input."""
    from tflite.TensorType import TensorType

    graph, found = model.Subgraphs(0), False
    for operator in map(graph.Operators, range(graph.OperatorsLength())):
        kinds = {graph.Tensors(int(number)).Type() for number in operator.OutputsAsNumpy()}
        kind = kind_of(model, operator)
        if kinds & {TensorType.RESOURCE, TensorType.VARIANT} and kind != "VAR_HANDLE":
            raise ModelError(
                f"{where}: {kind} keeps a state that is not a tensor; export the model without it"
            )
        found = found or kind == "VAR_HANDLE"
    return found


class Variables:
    """Part of a converter of TVM: these methods come before its own."""

    @property
    def _kept(self: Any) -> dict[str, dict[Any, Any]]:
        """Of each variable: its value so far, where it began, and the input that stands for that."""
        empty: dict[str, dict[Any, Any]] = {"now": {}, "initial": {}, "input": {}}
        found: dict[str, dict[Any, Any]] = self.conversion_state.setdefault("kept", empty)
        return found

    def convert_assign_variable(self: Any, op: Any) -> None:
        """From now on the variable has another value; before the first run that is where it begins."""
        handle, value = self.get_input_tensors(op)
        key = self._get_resource_key_for_handle(handle, "ASSIGN_VARIABLE")
        found = self._value(value)
        if self.conversion_state["in_call_once_init"]:
            self._kept["initial"][key] = known_value(found, self.bb)
        else:
            self._kept["now"][key] = found

    def convert_read_variable(self: Any, op: Any) -> Any:
        """What the variable has now: what was assigned in this run, or else what the last run left."""
        from tvm import relax

        (handle,), (result,) = self.get_input_tensors(op), self.get_output_tensors(op)
        key, kept = self._get_resource_key_for_handle(handle, "READ_VARIABLE"), self._kept
        if key not in kept["now"]:
            shape = [int(size) for size in self.get_tensor_shape(result)]
            kind = self.get_tensor_type_str(result.tensor.Type())
            name = f"state_{len(kept['input'])}"
            kept["input"][key] = kept["now"][key] = relax.Var(name, relax.TensorType(shape, kind))
        return kept["now"][key]

    def state(self: Any) -> tuple[list[Any], list[Any], list[KeptValue]]:
        """Inputs and outputs of variables that are read before they are assigned, and where they begin."""
        kept, described = self._kept, []
        for key, variable in kept["input"].items():
            shape = [int(size) for size in variable.ty.shape.values]
            initial = kept["initial"].get(key)
            start = np.zeros(shape, str(variable.ty.dtype)) if initial is None else initial.reshape(shape)
            name = str(variable.name)
            described.append(KeptValue(input=name, output=f"{name}_next", initial=start))
        return list(kept["input"].values()), [kept["now"][key] for key in kept["input"]], described


def with_state(model: Any, shapes: Mapping[str, Any], converter: Any) -> tuple[Any, list[KeptValue]]:
    """A model as TVM's importer makes it, with the variables after its inputs and after its outputs."""
    from tvm import relax
    from tvm.relax.frontend.tflite.tflite_frontend import ExprTable, _input_type, get_tensor_name

    found, types = _input_type(model)
    graph, table, bb = model.Subgraphs(0), ExprTable(), relax.BlockBuilder()
    named: Any = get_tensor_name
    with bb.function("main"):
        inputs = []
        with bb.dataflow():
            for name in (named(graph, number) for number in graph.InputsAsNumpy()):
                kind = relax.TensorType({**found, **shapes}[name], types[name])
                inputs.append(relax.Var(name, kind))
                table.set_expr(name, inputs[-1])
            walk = converter(model, graph, table, bb)
            walk.check_unsupported_ops()
            walk.convert_op_to_relax()
            outputs = [walk.get_tensor_expr(one) for one in walk.get_tensors(graph.OutputsAsNumpy())]
            variables, after, described = walk.state()
            answer = bb.emit_output(relax.Tuple([*outputs, *after]))
        bb.emit_func_output(answer, [*inputs, *variables])
    return bb.get(), described
