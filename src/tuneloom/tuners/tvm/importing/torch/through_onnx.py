"""PyTorch programs with something TVM's importer of them lacks: exported to ONNX, and taken from there."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.importing.onnx.graphs import import_onnx
from tuneloom.tuners.tvm.importing.relax import Converted

_REPLACE = "replace it in the model"


def through_onnx(
    program: Any, where: str, shapes: Mapping[str, tuple[int, ...]], refusal: str, *, only_tvm: bool
) -> Converted:
    """The program by way of ONNX, where parts of it may run in ONNX Runtime.

    Raises ModelError with `refusal`, which says what TVM can't take, if that way is closed too.
    """
    if find_spec("onnxscript") is None:
        raise ModelError(
            f"{where}: {refusal}; {_REPLACE}, or let it go through ONNX: pip install onnxscript onnxruntime"
        )
    try:
        model = _exported(program)
    except Exception as error:
        raise ModelError(f"{where}: {refusal}; {_REPLACE}") from error
    converted = import_onnx(model, where, shapes, only_tvm=only_tvm)
    return replace(converted, notes=(f"{refusal}, so the program goes through ONNX", *converted.notes))


def _exported(program: Any) -> Any:
    import torch

    exported = torch.onnx.export(program, dynamo=True, verbose=False)
    if exported is None:
        raise ValueError("nothing was exported")
    return exported.model_proto
