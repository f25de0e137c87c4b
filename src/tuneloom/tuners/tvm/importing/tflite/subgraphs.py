"""Graphs inside a TensorFlow Lite graph: branches, loops and functions become plain operators.

TVM's own converter makes functions of them, which nothing behind it can tune.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.cleaning.control import MOST_TURNS, MOST_UNROLLED
from tuneloom.tuners.tvm.importing.tflite.known_values import known_value
from tuneloom.tuners.tvm.importing.tflite.operators import kind_of

DIVISIONS = ("DIV", "FLOOR_DIV", "FLOOR_MOD")


class Subgraphs:
    """Part of a converter of TVM: these methods come before its own."""

    def convert_if(self: Any, op: Any) -> Any:
        """The branch that is taken, or both and a choice between them."""
        from tflite.IfOptions import IfOptions

        options = self._get_builtin_options(op, IfOptions)
        condition, *given = self._values(op)
        known = known_value(condition, self.bb)
        if known is not None:
            taken = options.ThenSubgraphIndex() if known.all() else options.ElseSubgraphIndex()
            return _one_or_all(self._inside(taken, given))
        for number in (options.ThenSubgraphIndex(), options.ElseSubgraphIndex()):
            self._check_harmless(self.model.Subgraphs(number))
        then = self._inside(options.ThenSubgraphIndex(), given)
        otherwise = self._inside(options.ElseSubgraphIndex(), given)
        return _one_or_all([self._chosen(condition, *pair) for pair in zip(then, otherwise, strict=True)])

    def convert_call(self: Any, op: Any) -> Any:
        """The operators of the function."""
        from tflite.CallOptions import CallOptions

        options = self._get_builtin_options(op, CallOptions)
        return _one_or_all(self._inside(options.Subgraph(), self._values(op)))

    def convert_while(self: Any, op: Any) -> Any:
        """The operators of each turn; the number of turns may not depend on inputs."""
        from tflite.WhileOptions import WhileOptions

        options = self._get_builtin_options(op, WhileOptions)
        values = self._values(op)
        steps = max(1, self.model.Subgraphs(options.BodySubgraphIndex()).OperatorsLength())
        most = min(MOST_TURNS, MOST_UNROLLED // steps)
        for _ in range(most + 1):
            (goes_on,) = self._inside(options.CondSubgraphIndex(), values)
            known = known_value(goes_on, self.bb)
            if known is None:
                raise NotImplementedError("a WHILE whose number of turns depends on the inputs")
            if not known.all():
                return _one_or_all(values)
            values = self._inside(options.BodySubgraphIndex(), values)
        raise NotImplementedError(f"a WHILE of more than {most} turns")

    def _values(self: Any, op: Any) -> list[Any]:
        return [self._value(one) for one in self.get_input_tensors(op)]

    def _value(self: Any, tensor: Any) -> Any:
        if self.is_prefetched(tensor.tensor_idx):
            return relax.const(self.get_prefetched_node(tensor.tensor_idx))
        return self.get_tensor_expr(tensor)

    def _inside(self: Any, number: int, given: Sequence[Any]) -> list[Any]:
        """What the operators of a graph make of these values."""
        from tvm.relax.frontend.tflite.tflite_frontend import ExprTable

        graph, refused = self.model.Subgraphs(number), dict[int, str]()
        alone = type("Inner", (type(self),), {"parts": {}, "refused": refused})
        inner: Any = alone(self.model, graph, ExprTable(), self.bb, self.conversion_state)
        inner.check_unsupported_ops()
        for tensor, value in zip(inner.get_tensors(graph.InputsAsNumpy()), given, strict=True):
            inner._begin_with(tensor, value)
        inner.convert_op_to_relax()
        if refused:
            raise NotImplementedError(next(iter(refused.values())))
        return [inner._value(one) for one in inner.get_tensors(graph.OutputsAsNumpy())]

    def _begin_with(self: Any, tensor: Any, value: Any) -> None:
        if np.dtype(self.get_tensor_type_as_numpy(tensor)).kind in "iub":
            known = known_value(value, self.bb)
            if known is not None:
                self.set_prefetched_node(tensor.tensor_idx, known)
        self._set(tensor, value)

    def _check_harmless(self: Any, graph: Any) -> None:
        """A branch that runs in vain may not end the program: whole numbers may be divided by zero there."""
        for operator in map(graph.Operators, range(graph.OperatorsLength())):
            result = graph.Tensors(operator.Outputs(0))
            whole = np.dtype(self.get_tensor_type_str(result.Type())).kind in "iu"
            if whole and kind_of(self.model, operator) in DIVISIONS:
                raise NotImplementedError("an IF with a division of whole numbers in a branch")

    def _chosen(self: Any, condition: Any, then: Any, otherwise: Any) -> Any:
        if [int(n) for n in then.ty.shape.values] != [int(n) for n in otherwise.ty.shape.values]:
            raise NotImplementedError("an IF whose branches have different shapes")
        return self.bb.emit(relax.op.where(condition, then, otherwise))


def _one_or_all(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else relax.Tuple(values)
