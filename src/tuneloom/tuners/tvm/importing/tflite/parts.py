"""Operators of a TensorFlow Lite graph that TVM can't take, gathered into parts that LiteRT runs."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.importing.relax import ForeignPart
from tuneloom.tuners.tvm.importing.tflite.operators import kind_of

RUNTIME = "tflite"


Types = list[tuple[tuple[int, ...], str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Neighbouring operators by their numbers, the tensors they read and give, and all of it as a model."""

    where: str
    function: str
    operators: tuple[int, ...]
    kinds: tuple[str, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    content: bytes = field(repr=False)

    @property
    def foreign(self) -> ForeignPart:
        """The part as bundles keep it."""
        return ForeignPart(
            function=self.function,
            operators=self.kinds,
            content=self.content,
            runtime=RUNTIME,
            suffix=".tflite",
        )

    def types(self, shapes: Sequence[Sequence[int]]) -> Types:
        """What it gives for inputs of these shapes; raises ModelError if LiteRT can't run it either."""
        try:
            return _types(self.content, shapes)
        except Exception as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            reason = lines[0] if lines else type(error).__name__
            raise ModelError(
                f"{self.where}: neither TVM nor LiteRT runs {', '.join(self.kinds)}: {reason}"
            ) from error


def can_be_cut() -> bool:
    """Whether the package is there that runs such parts."""
    return find_spec("ai_edge_litert") is not None


def cut(model: Any, refused: Collection[int], where: str) -> dict[int, Part]:
    """Parts by their first operator. Operators are in order, so neighbours in the file can run together."""
    runs: list[list[int]] = []
    for number in sorted(refused):
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return {run[0]: _part(model, run, where) for run in runs}


def _part(model: Any, run: Sequence[int], where: str) -> Part:
    graph = model.Subgraphs(0)
    inside = [graph.Operators(number) for number in run]
    made = [int(n) for one in inside for n in one.OutputsAsNumpy()]
    read = dict.fromkeys(int(n) for one in inside for n in one.InputsAsNumpy() if n >= 0)
    inputs = [n for n in read if n not in made and not _is_constant(model, graph.Tensors(n))]
    outside = [graph.Operators(n) for n in range(graph.OperatorsLength()) if n not in run]
    wanted = {int(n) for one in outside for n in one.InputsAsNumpy()} | set(map(int, graph.OutputsAsNumpy()))
    outputs = [n for n in made if n in wanted]
    content = _content(model, run, inputs, outputs)
    return Part(
        where=where,
        function=f"tuneloom.{hashlib.sha256(content).hexdigest()[:16]}",
        operators=tuple(run),
        kinds=tuple(dict.fromkeys(kind_of(model, one) for one in inside)),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        content=content,
    )


def _is_constant(model: Any, tensor: Any) -> bool:
    return bool(model.Buffers(tensor.Buffer()).DataLength())


def _content(model: Any, run: Sequence[int], inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
    """A model of these operators alone; weights of others are left out, their tensors stay."""
    import flatbuffers
    from ai_edge_litert import schema_py_generated as schema

    whole = schema.ModelT.InitFromObj(schema.Model.GetRootAs(bytes(model._tab.Bytes), 0))
    graph = whole.subgraphs[0]
    graph.operators = [graph.operators[number] for number in run]
    graph.inputs, graph.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)
    used = {graph.tensors[n].buffer for one in graph.operators for n in one.inputs if n >= 0}
    used |= {tensor.buffer for other in whole.subgraphs[1:] for tensor in other.tensors}
    for number, buffer in enumerate(whole.buffers):
        if number not in used:
            buffer.data = None
    whole.signatureDefs, whole.metadata, whole.metadataBuffer = None, None, None
    builder = flatbuffers.Builder(1 << 16)
    builder.Finish(whole.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _types(content: bytes, shapes: Sequence[Sequence[int]]) -> Types:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_content=content, num_threads=1)
    for detail, shape in zip(interpreter.get_input_details(), shapes, strict=True):
        interpreter.resize_tensor_input(detail["index"], list(shape))
    interpreter.allocate_tensors()
    details = interpreter.get_output_details()
    return [(tuple(map(int, one["shape"])), np.dtype(one["dtype"]).name) for one in details]
