"""TensorFlow Lite models: read through the package `tflite`, and handed to TVM."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.importing.packages import needed
from tuneloom.tuners.tvm.importing.relax import Converted, describe_inputs, describe_outputs, one_line

_MAGIC = b"TFL3"


def read_tflite(path: Path, content: bytes) -> Any:
    """Parse a flatbuffer; raises ModelError when it is none, or when `tflite` is missing."""
    if content[4:8] != _MAGIC:
        raise ModelError(f"{path}: not a TensorFlow Lite model, or a damaged one; export it again")
    tflite = needed("tflite", f"{path.name}: reading it")
    try:
        model = tflite.Model.GetRootAsModel(content, 0)
        complete = _complete(model)
    except Exception as error:
        raise ModelError(f"{path}: damaged or truncated; copy or export it again") from error
    if not complete:
        raise ModelError(f"{path}: the file holds no complete graph; copy or export it again")
    return model


def _complete(model: Any) -> bool:
    """Whether there is a graph; raises whatever a torn flatbuffer raises when all of it is read."""
    for number in range(model.BuffersLength()):
        model.Buffers(number).DataAsNumpy()
    graph = model.Subgraphs(0)
    for number in range(graph.TensorsLength()):
        _name(graph, number)
        graph.Tensors(number).ShapeAsNumpy()
    for number in range(graph.OperatorsLength()):
        model.OperatorCodes(graph.Operators(number).OpcodeIndex()).BuiltinCode()
        graph.Operators(number).OutputsAsNumpy()
    return bool(graph.OperatorsLength() and graph.OutputsLength())


def import_tflite(model: Any, where: str, shapes: Mapping[str, tuple[int, ...]]) -> Converted:
    """A TensorFlow Lite model as a Relax module, with its inputs and outputs."""
    load_tvm()
    from tvm.relax.frontend.tflite import from_tflite

    graph = model.Subgraphs(0)
    bound = _bound_shapes(graph, where, shapes)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = from_tflite(model, shape_dict=bound, op_converter=_converter(where))
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(f"{where}: TVM can't import this model: {one_line(error)}") from error
    module["main"] = module["main"].without_attr("params").without_attr("num_input")
    inputs = [_name(graph, number) for number in graph.InputsAsNumpy()]
    outputs = [_name(graph, number) for number in graph.OutputsAsNumpy()]
    return Converted(
        module=module,
        inputs=describe_inputs(module, inputs, where),
        outputs=describe_outputs(module, outputs, where),
    )


def _converter(where: str) -> Any:
    """TVM's converter of operators, which says where one is that it does not know."""
    from tvm.relax.frontend.tflite.tflite_frontend import OperatorConverter

    class PlacingConverter(OperatorConverter):  # type: ignore[misc]
        def check_unsupported_ops(self) -> None:
            for number in range(self.subgraph.OperatorsLength()):
                operator = self.subgraph.Operators(number)
                kind = self.get_op_code_str(operator)
                if kind not in self.convert_map:
                    output = _name(self.subgraph, operator.Outputs(0))
                    raise ModelError(
                        f"{where}: TVM does not import operator {kind} (with output {output!r}); "
                        "replace it in the model or export with other operators"
                    )
            super().check_unsupported_ops()

    return PlacingConverter


def _bound_shapes(
    graph: Any, where: str, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    tensors = {_name(graph, number): graph.Tensors(number) for number in graph.InputsAsNumpy()}
    for name in shapes:
        if name not in tensors:
            raise ModelError(f"{where}: there is no input {name!r}; inputs: {', '.join(tensors)}")
    return {name: _bound_shape(name, tensor, where, shapes.get(name)) for name, tensor in tensors.items()}


def _bound_shape(name: str, tensor: Any, where: str, given: tuple[int, ...] | None) -> tuple[int, ...]:
    """The shape of an input; its signature has -1 where a dimension is open."""
    open_shape = tensor.ShapeSignatureAsNumpy() if tensor.ShapeSignatureLength() else tensor.ShapeAsNumpy()
    dims = [int(dim) for dim in open_shape]
    shown = ",".join("?" if dim < 0 else str(dim) for dim in dims)
    if given is None:
        if min(dims, default=1) < 0:
            remedy = shown.replace("?", "1")
            raise ModelError(
                f"{where}: input {name!r} has an unbound shape ({shown}); "
                f"bind it with --shape {name}={remedy}"
            )
        return tuple(dims)
    if len(given) != len(dims) or any(dim not in (-1, size) for dim, size in zip(dims, given, strict=True)):
        wanted = ",".join(map(str, given))
        raise ModelError(f"{where}: input {name!r} is ({shown}); --shape {name}={wanted} does not fit it")
    return given


def _name(graph: Any, number: int) -> str:
    """A tensor's name as TVM's importer reads it."""
    return str(graph.Tensors(int(number)).Name().decode())
