"""ONNX files: read and checked, with clear errors on the way."""

import importlib
from pathlib import Path
from typing import Any

from tuneloom.compiler.lazy import onnx
from tuneloom.errors import ModelError, reason_of

_NO_VERSION = 1 << 31  # ONNX reads versions of operators as whole numbers of 32 bits


def read_onnx(path: Path, content: bytes) -> Any:
    """Parse and check a file; raises ModelError that says what is wrong with it."""
    if not content:
        raise ModelError(f"{path}: the file is empty; export the model again")
    if _is_text(content):
        raise ModelError(f"{path}: this is a text file, not an ONNX model; give the exported model itself")
    try:
        model = onnx.load(path)
    except _decode_error() as error:
        raise ModelError(f"{path}: damaged or truncated ONNX file; copy or export it again") from error
    except (OSError, ValueError, onnx.checker.ValidationError) as error:
        raise ModelError(
            f"{path}: weights kept in another file can't be read, put that file beside the model: "
            f"{reason_of(error)}"
        ) from error
    _check(model, str(path))
    return model


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
    for used in model.opset_import:
        if not 0 <= used.version < _NO_VERSION:
            raise ModelError(
                f"{where}: operators of version {used.version} (damaged?); copy or export it again"
            )
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
