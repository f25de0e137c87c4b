"""TensorFlow Lite models: read through the package `tflite`, and handed to TVM."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneloom.compiler.fast_import import load_tvm
from tuneloom.errors import ModelError, reason_of
from tuneloom.tuners.tvm.importing.binding import Dims, bind
from tuneloom.tuners.tvm.importing.packages import needed
from tuneloom.tuners.tvm.importing.relax import Converted, KeptValue, describe_inputs, describe_outputs
from tuneloom.tuners.tvm.importing.tflite.converter import operator_converter
from tuneloom.tuners.tvm.importing.tflite.operators import kind_of
from tuneloom.tuners.tvm.importing.tflite.parts import Part, can_be_cut, cut
from tuneloom.tuners.tvm.importing.tflite.transposed import channels_first
from tuneloom.tuners.tvm.importing.tflite.variables import has_variables, with_state

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


def import_tflite(
    model: Any, where: str, shapes: Mapping[str, tuple[int, ...]], *, only_tvm: bool = False
) -> Converted:
    """A TensorFlow Lite model as a Relax module, with its inputs and outputs.

    Operators that TVM can't take become parts for LiteRT, unless `only_tvm`, or unless that is not
    installed: then the first of them is named in a ModelError.
    """
    load_tvm()
    graph = model.Subgraphs(0)
    stateful = has_variables(model, where)
    bound = bind(_declared(graph), shapes, where)
    refused: dict[int, str] = {}
    module, state = _module(model, bound.shapes, {}, refused, where, stateful)
    parts: dict[int, Part] = {}
    if refused:
        if only_tvm or not can_be_cut():
            raise ModelError(f"{where}: {_refusal(model, refused, only_tvm)}")
        parts = cut(model, refused, where)
        module, state = _module(model, bound.shapes, parts, {}, where, stateful)
    inputs = [*(_name(graph, n) for n in graph.InputsAsNumpy()), *(one.input for one in state)]
    outputs = [*(_name(graph, n) for n in graph.OutputsAsNumpy()), *(one.output for one in state)]
    return Converted(
        module=module,
        inputs=describe_inputs(module, inputs, where),
        outputs=describe_outputs(module, outputs, where),
        notes=(*bound.notes, *(_note(part) for part in parts.values())),
        foreign=tuple(part.foreign for part in parts.values()),
        state=tuple(state),
    )


def _module(
    model: Any,
    shapes: Mapping[str, tuple[int, ...]],
    parts: Mapping[int, Part],
    refused: dict[int, str],
    where: str,
    stateful: bool,
) -> tuple[Any, list[KeptValue]]:
    from tvm.relax.frontend.tflite import from_tflite

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            converter = operator_converter(parts, refused)
            if stateful:
                module, state = with_state(model, shapes, converter)
            else:
                module, state = from_tflite(model, shape_dict=dict(shapes), op_converter=converter), []
    except ModelError:
        raise
    except Exception as error:
        if refused:
            return None, []
        raise ModelError(f"{where}: TVM can't import this model: {reason_of(error)}") from error
    module["main"] = module["main"].without_attr("params").without_attr("num_input")
    return channels_first(module), state


def _refusal(model: Any, refused: Mapping[int, str], only_tvm: bool) -> str:
    number, reason = next(iter(refused.items()))
    operator = model.Subgraphs(0).Operators(number)
    kind, output = kind_of(model, operator), _name(model.Subgraphs(0), operator.Outputs(0))
    remedy = "replace it in the model or export with other operators"
    if not only_tvm:
        remedy += ", or let LiteRT run it: pip install ai-edge-litert"
    if "does not import" in reason:
        return f"TVM does not import operator {kind} (with output {output!r}); {remedy}"
    return f"TVM can't import operator {kind} (with output {output!r}): {reason}; {remedy}"


def _note(part: Part) -> str:
    return f"LiteRT runs {', '.join(part.kinds)}: TVM can't take them"


def _declared(graph: Any) -> dict[str, Dims | None]:
    """What the file says about its inputs; a signature has -1 where a dimension is open."""
    return {_name(graph, number): _dims(graph.Tensors(number)) for number in graph.InputsAsNumpy()}


def _dims(tensor: Any) -> Dims:
    shape = tensor.ShapeSignatureAsNumpy() if tensor.ShapeSignatureLength() else tensor.ShapeAsNumpy()
    sizes = [int(size) for size in shape] if tensor.ShapeLength() else []
    return tuple(size if size > 0 else "?" for size in sizes)


def _name(graph: Any, number: int) -> str:
    """A tensor's name as TVM's importer reads it."""
    return str(graph.Tensors(int(number)).Name().decode())
