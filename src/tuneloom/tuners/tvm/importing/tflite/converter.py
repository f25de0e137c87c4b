"""TVM's converter of TensorFlow Lite graphs, mended, and told which operators another runtime gets."""

from collections.abc import Mapping
from typing import Any

from tuneloom.compiler.lazy import relax
from tuneloom.errors import reason_of
from tuneloom.tuners.tvm.importing.tflite.known import KnownValues
from tuneloom.tuners.tvm.importing.tflite.operators import TRANSPOSED, MendedOperators, kind_of
from tuneloom.tuners.tvm.importing.tflite.parts import Part
from tuneloom.tuners.tvm.importing.tflite.subgraphs import Subgraphs
from tuneloom.tuners.tvm.importing.tflite.variables import Variables


def operator_converter(parts: Mapping[int, Part], refused: dict[int, str]) -> Any:
    """A converter that calls a function for each of these parts, which are found by their first operator.

    Other operators that it can't convert are noted in `refused`, with the reason; nothing comes of the
    graph then.
    """
    from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter

    members = {"parts": parts, "refused": refused}
    kinds = (GraphWalk, Variables, KnownValues, MendedOperators, Subgraphs, OperatorConverter)
    return type("MendedConverter", kinds, members)


class GraphWalk:
    """Part of a converter of TVM: goes through the operators and says which it can't take."""

    parts: Mapping[int, Part]
    refused: dict[int, str]

    def check_unsupported_ops(self: Any) -> None:
        """Each operator is asked when its turn comes."""
        self.convert_map[TRANSPOSED] = self.convert_transposed_with_bias

    def get_op_code_str(self: Any, op: Any) -> str:
        """The name under which a converter is found."""
        kind = kind_of(self.model, op)
        return kind if kind == TRANSPOSED else str(super().get_op_code_str(op))  # type: ignore[misc]

    def convert_op_to_relax(self: Any) -> None:
        """Operator by operator; one that fails may be followed by others that can't be judged."""
        inside = {number for part in self.parts.values() for number in part.operators}
        for number in range(self.subgraph.OperatorsLength()):
            if number in self.parts:
                self._called(self.parts[number])
            elif number not in inside:
                self._taken(number)

    def _taken(self: Any, number: int) -> None:
        operator = self.subgraph.Operators(number)
        kind = kind_of(self.model, operator)
        try:
            if kind.startswith("custom ") or self.get_op_code_str(operator) not in self.convert_map:
                raise NotImplementedError(f"TVM does not import operator {kind}")
            if not self._computed(operator):
                self._converted(operator)
        except Exception as error:
            self.refused[number] = reason_of(error)
            self._stood_in_for(operator)

    def _converted(self: Any, operator: Any) -> None:
        result = self.convert_map[self.get_op_code_str(operator)](op=operator)
        if result is None:
            return
        result = self.bb.normalize(result)
        outputs = self.get_output_tensors(operator)
        for place, output in enumerate(outputs):
            self._set(output, result if len(outputs) == 1 else result[place])

    def _stood_in_for(self: Any, operator: Any) -> None:
        """Values of the types that the file says, so that the operators behind can be asked too."""
        for output in self.get_output_tensors(operator):
            shape = [int(size) for size in self.get_tensor_shape(output)]
            kind = self.get_tensor_type_str(output.tensor.Type())
            self._set(output, self.bb.emit(relax.op.zeros(shape, kind)))

    def _called(self: Any, part: Part) -> None:
        """A call of the function that will run a part."""
        inputs = [self.bb.emit(self.get_tensor_expr(one)) for one in self.get_tensors(part.inputs)]
        shapes = [[int(extent) for extent in value.ty.shape.values] for value in inputs]
        types = [relax.TensorType(shape, kind) for shape, kind in part.types(shapes)]
        found = self.bb.emit(relax.call_dps_packed(part.function, relax.Tuple(inputs), types))
        for place, output in enumerate(self.get_tensors(part.outputs)):
            value = found if len(types) == 1 else self.bb.emit(relax.TupleGetItem(found, place))
            self._set(output, value)

    def _set(self: Any, output: Any, value: Any) -> None:
        from tvm.relax.frontend.tflite.tflite_frontend import get_tensor_name

        name: Any = get_tensor_name
        self.exp_tab.set_expr(name(self.subgraph, output.tensor_idx), value)
