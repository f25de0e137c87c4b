"""A model's own runtime, to compare a bundle with what its user would run instead."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tuneloom.errors import InputError, ModelError, reason_of
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.models.compiling.running import Array
from tuneloom.tuners.tvm.runner import Refused, onnx_session

Run = Callable[[Sequence[Array]], list[Array]]
_ZOO = "zoo:"
RIVALS = {"onnxruntime": ".onnx", "torch": ".pt2", "tflite": ".tflite"}
"""Runtimes, and the files they run."""


def rival_of(model: str) -> str:
    """The runtime a model belongs to."""
    suffix = ".onnx" if model.startswith(_ZOO) else Path(model).suffix
    return next(name for name, ending in RIVALS.items() if ending == suffix)


def open_rival(
    name: str, model: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], threads: int
) -> Run:
    """The model in a runtime with so many threads.

    Raises InputError when the runtime does not run such files, is not installed or refuses the model.
    """
    if rival_of(model) != name:
        raise InputError(f"{model} does not run in {name}; compare it with --against {rival_of(model)}")
    if not model.startswith(_ZOO) and not Path(model).is_file():
        raise InputError(f"{model}, from which the bundle was made, is not there any more; put it back")
    makers = {"onnxruntime": _onnxruntime, "torch": _torch, "tflite": _tflite}
    try:
        return makers[name](model, inputs, outputs, threads)
    except (ImportError, Refused) as error:
        raise InputError(f"{name} is not installed; pip install {_package(name)}") from error
    except InputError:
        raise
    except Exception as error:
        raise ModelError(f"{name} refuses {model}: {reason_of(error)}") from error


def _package(name: str) -> str:
    return "ai-edge-litert" if name == "tflite" else name


def _onnxruntime(
    model: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], threads: int
) -> Run:
    from tuneloom.tuners.tvm.zoo.listing import zoo_model

    zoo = model.startswith(_ZOO)
    content = zoo_model(model.removeprefix(_ZOO)).SerializeToString() if zoo else model
    session = onnx_session(content, threads)
    names = [info.name for info in inputs]
    return lambda values: list(session.run(None, dict(zip(names, values, strict=True))))


def _torch(model: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], threads: int) -> Run:
    import torch

    torch.set_num_threads(threads)
    program = torch.export.load(model).module()

    def run(values: Sequence[Array]) -> list[Array]:
        with torch.no_grad():
            found = program(*(torch.from_numpy(np.array(value)) for value in values))
        fields = found if isinstance(found, (tuple, list)) else (found,)
        return [field.numpy() for field in fields]

    return run


def _tflite(model: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], threads: int) -> Run:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=model, num_threads=threads)
    if len(interpreter.get_input_details()) != len(inputs):
        raise InputError(f"{model} keeps its state inside LiteRT, so it can't be compared with the bundle's")
    for detail, info in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.resize_tensor_input(detail["index"], info.shape)
    interpreter.allocate_tensors()
    places = [detail["index"] for detail in interpreter.get_input_details()]
    found = {detail["name"]: detail["index"] for detail in interpreter.get_output_details()}
    ordered = [found.get(info.name, place) for info, place in zip(outputs, found.values(), strict=True)]

    def run(values: Sequence[Array]) -> list[Array]:
        for place, value in zip(places, values, strict=True):
            interpreter.set_tensor(place, value)
        interpreter.invoke()
        return [interpreter.get_tensor(place) for place in ordered]

    return run
