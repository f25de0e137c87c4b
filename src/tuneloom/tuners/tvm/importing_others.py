"""PyTorch exports and TensorFlow Lite models, where their packages are installed."""

import importlib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.importing_relax import Described, describe_inputs, describe_outputs, one_line


def read_exported(path: Path) -> Any:
    """Load what `torch.export.save` wrote."""
    torch = _package("torch", path.name, "torch")
    try:
        return torch.export.load(path)
    except Exception as error:
        raise ModelError(f"{path}: torch.export can't load this file: {one_line(error)}") from error


def import_exported(program: Any, where: str) -> tuple[Any, Described, Described]:
    """An exported program as a Relax module, with its inputs and outputs."""
    load_tvm()
    from tvm.relax.frontend.torch import from_exported_program

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = from_exported_program(program, keep_params_as_input=False, unwrap_unit_return_tuple=True)
    except Exception as error:
        raise ModelError(f"{where}: TVM can't import this program: {one_line(error)}") from error
    return module, describe_inputs(module, (), where), describe_outputs(module, (), where)


def read_tflite(path: Path, content: bytes) -> Any:
    """Parse a TensorFlow Lite flatbuffer."""
    tflite = _package("tflite", path.name, "tflite")
    if content[4:8] != b"TFL3":
        raise ModelError(f"{path}: not a TensorFlow Lite model, or a damaged one; export it again")
    try:
        return tflite.Model.GetRootAsModel(content, 0)
    except Exception as error:
        raise ModelError(f"{path}: damaged TensorFlow Lite file: {one_line(error)}") from error


def import_tflite(
    model: Any, where: str, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[Any, Described, Described]:
    """A TensorFlow Lite model as a Relax module, with its inputs and outputs."""
    load_tvm()
    from tvm.relax.frontend.tflite import from_tflite

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = from_tflite(model, shape_dict=dict(shapes) or None)
    except Exception as error:
        raise ModelError(f"{where}: TVM can't import this model: {one_line(error)}") from error
    return module, describe_inputs(module, (), where), describe_outputs(module, (), where)


def _package(name: str, where: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ModelError(
            f"{where}: reading it needs the package {name}; install it with: pip install 'tuneloom[{extra}]'"
        ) from error
