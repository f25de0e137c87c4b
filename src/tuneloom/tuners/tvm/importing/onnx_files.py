"""ONNX models: read, checked, and handed to TVM with clear errors on the way."""

import importlib
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.importing.converters import better_converters
from tuneloom.tuners.tvm.importing.relax import Described, describe_inputs, describe_outputs, one_line

_OWN_DOMAINS = ("", "ai.onnx", "com.microsoft")


def read_onnx(path: Path, content: bytes) -> Any:
    """Parse and check a file; raises ModelError that says what is wrong with it."""
    import onnx

    if not content:
        raise ModelError(f"{path}: the file is empty; export the model again")
    if _is_text(content):
        raise ModelError(f"{path}: this is a text file, not an ONNX model; give the exported model itself")
    try:
        model = onnx.load(path)
    except _decode_error() as error:
        raise ModelError(f"{path}: damaged or truncated ONNX file; copy or export it again") from error
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise ModelError(f"{path}: weights kept in another file can't be read: {one_line(error)}") from error
    _check(model, str(path))
    return model


def import_onnx(
    model: Any, where: str, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[Any, Described, Described]:
    """The model as a Relax module, with its inputs and outputs."""
    load_tvm()
    from tvm.relax.frontend.onnx import from_onnx

    inputs = _graph_inputs(model)
    bound = _bound_shapes(inputs, where, shapes)
    _check_operators(model, where)
    try:
        with warnings.catch_warnings(), better_converters():
            warnings.simplefilter("ignore")
            module = from_onnx(model, shape_dict={name: list(shape) for name, shape in bound.items()})
    except Exception as error:
        raise ModelError(f"{where}: TVM can't import this graph: {one_line(error)}") from error
    names = [value.name for value in inputs]
    outputs = [value.name for value in model.graph.output]
    return module, describe_inputs(module, names, where), describe_outputs(module, outputs, where)


def _decode_error() -> type[Exception]:
    """What protobuf raises; the package carries no types of its own."""
    error: type[Exception] = importlib.import_module("google.protobuf.message").DecodeError
    return error


def _is_text(content: bytes) -> bool:
    head = content[:512]
    printable = sum(32 <= byte < 127 or byte in b"\t\r\n" for byte in head)
    return printable == len(head)


def _check(model: Any, where: str) -> None:
    """Every value a graph reads must come from somewhere: a truncated file loses some."""
    graph = model.graph
    if not graph.node or not graph.output:
        raise ModelError(f"{where}: the file holds no complete graph (truncated?); copy or export it again")
    known = {"", *(value.name for value in graph.input), *(tensor.name for tensor in graph.initializer)}
    known.update(sparse.values.name for sparse in graph.sparse_initializer)
    for node in graph.node:
        for name in node.input:
            if name not in known:
                raise ModelError(
                    f"{where}: node {node.name or node.op_type} reads {name!r}, which nothing provides "
                    "(truncated?); copy or export it again"
                )
        known.update(node.output)
    for value in graph.output:
        if value.name not in known:
            raise ModelError(
                f"{where}: output {value.name!r} is never computed (truncated?); export it again"
            )


def _graph_inputs(model: Any) -> list[Any]:
    given = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in given]


def _bound_shapes(
    inputs: list[Any], where: str, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    names = [value.name for value in inputs]
    for name in shapes:
        if name not in names:
            raise ModelError(f"{where}: no input {name!r} to give a shape; inputs: {', '.join(names)}")
    return {value.name: _bound_shape(value, where, shapes.get(value.name)) for value in inputs}


def _bound_shape(value: Any, where: str, given: tuple[int, ...] | None) -> tuple[int, ...]:
    dims = list(value.type.tensor_type.shape.dim)
    open_dims = [dim.dim_param or "?" for dim in dims if not dim.dim_value]
    shown = ",".join(str(dim.dim_value or dim.dim_param or "?") for dim in dims)
    if given is None:
        if open_dims or not value.type.tensor_type.HasField("shape"):
            remedy = shown.replace(open_dims[0], "1", 1) if open_dims else "1,3,224,224"
            raise ModelError(
                f"{where}: input {value.name!r} has an unbound shape ({shown}); "
                f"bind it with --shape {value.name}={remedy}"
            )
        return tuple(int(dim.dim_value) for dim in dims)
    clash = len(given) != len(dims) or any(
        dim.dim_value and dim.dim_value != size for dim, size in zip(dims, given, strict=False)
    )
    if dims and clash:
        raise ModelError(
            f"{where}: input {value.name!r} is ({shown}); --shape {value.name}="
            f"{','.join(map(str, given))} does not fit it"
        )
    return given


def _check_operators(model: Any, where: str) -> None:
    from tvm.relax.frontend.onnx import onnx_frontend

    known = onnx_frontend._get_convert_map()
    for node in _nodes(model.graph):
        if node.domain not in _OWN_DOMAINS or node.op_type not in known:
            kind = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            place = node.name or f"with output {node.output[0]!r}"
            raise ModelError(
                f"{where}: TVM does not import operator {kind} (node {place}); "
                "replace it in the model or export with other operators"
            )


def _nodes(graph: Any) -> Iterator[Any]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
