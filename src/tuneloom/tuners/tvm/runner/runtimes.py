"""Whole models that another runtime runs."""

import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tuneloom.tuners.tvm.runner.refused import Refused

ON_HOST = ("CPUExecutionProvider",)
"""Where ONNX Runtime runs what is left to it."""
ONNXRUNTIME = "onnxruntime"
PACKAGES = {"tflite": "ai-edge-litert"}
"""What brings a runtime, where that has another name."""


def run_by(runtime: str, model: str | bytes, entry: dict[str, Any], threads: int) -> Any:
    """A function from inputs to outputs, in the order of an entry, that a runtime runs alone.

    `model` is a file or what is in one. Raises Refused if the runtime is not installed.
    """
    makers = {ONNXRUNTIME: by_session, "openvino": by_openvino, "tflite": by_litert, "torch": by_torch}
    if runtime not in makers:
        raise Refused(f"this model runs in {runtime}, which this version does not know; tune it again")
    try:
        return makers[runtime](model, entry, threads)
    except ImportError as error:
        package = PACKAGES.get(runtime, runtime)
        raise Refused(f"this model runs in {runtime}, which is missing; pip install {package}") from error


def by_session(model: str | bytes, entry: dict[str, Any], threads: int) -> Any:
    """A whole model in ONNX Runtime."""
    session = onnx_session(model, threads)
    names = [one.name for one in session.get_inputs()]
    return lambda values: session.run(None, dict(zip(names, values, strict=True)))


def by_openvino(model: str | bytes, entry: dict[str, Any], threads: int) -> Any:
    """The same in OpenVINO, which would compute in half precision on some CPUs unless it is told."""
    import openvino

    core = openvino.Core()
    with as_file(model) as given:
        read = core.read_model(given)
    ports = in_order(read.inputs, entry["inputs"])
    read.reshape({p: info["shape"] for p, info in zip(ports, entry["inputs"], strict=True)})
    settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(read, "CPU", settings)
    request = compiled.create_infer_request()
    inputs = in_order(compiled.inputs, entry["inputs"])
    outputs = in_order(compiled.outputs, entry["outputs"])

    def run(values: Sequence[Any]) -> list[Any]:
        found = request.infer(dict(zip(inputs, values, strict=True)), share_inputs=True)
        return [found[port] for port in outputs]

    return run


@contextmanager
def as_file(model: str | bytes) -> Iterator[str | bytes]:
    """What OpenVINO reads: content of an ONNX file as it is, that of TensorFlow Lite's only from a file."""
    if isinstance(model, str) or model[4:8] != b"TFL3":
        yield model
        return
    with tempfile.TemporaryDirectory(prefix="tuneloom-") as folder:
        (Path(folder) / "model.tflite").write_bytes(model)
        yield str(Path(folder) / "model.tflite")


def in_order(ports: Sequence[Any], infos: Sequence[dict[str, Any]]) -> list[Any]:
    """OpenVINO's ports in the order of a manifest: by their names, or as they come where names are others."""
    if len(ports) != len(infos):
        raise ValueError(f"OpenVINO has {len(ports)} tensors where the model has {len(infos)}")
    named = {name: port for port in ports for name in port.get_names()}
    known = [named.get(info["name"]) for info in infos]
    return list(ports) if any(port is None for port in known) else known


def by_litert(model: str | bytes, entry: dict[str, Any], threads: int) -> Any:
    """The same in LiteRT."""
    from ai_edge_litert.interpreter import Interpreter

    where: dict[str, Any] = {"model_path" if isinstance(model, str) else "model_content": model}
    interpreter = Interpreter(**where, num_threads=threads)
    places = [detail["index"] for detail in interpreter.get_input_details()]
    if len(places) != len(entry["inputs"]):
        raise Refused("this model keeps its state inside LiteRT")
    for place, info in zip(places, entry["inputs"], strict=True):
        interpreter.resize_tensor_input(place, info["shape"])
    interpreter.allocate_tensors()
    found = {detail["name"]: detail["index"] for detail in interpreter.get_output_details()}
    pairs = zip(entry["outputs"], found.values(), strict=True)
    ordered = [found.get(info["name"], place) for info, place in pairs]

    def run(values: Sequence[Any]) -> list[Any]:
        for place, value in zip(places, values, strict=True):
            interpreter.set_tensor(place, value)
        interpreter.invoke()
        return [interpreter.get_tensor(place) for place in ordered]

    return run


def by_torch(model: str | bytes, entry: dict[str, Any], threads: int) -> Any:
    """The same in PyTorch, eagerly."""
    import torch

    torch.set_num_threads(threads)
    program = torch.export.load(model if isinstance(model, str) else io.BytesIO(model)).module()

    def run(values: Sequence[Any]) -> list[Any]:
        with torch.no_grad():
            found = program(*(torch.from_numpy(np.array(value)) for value in values))
        return [one.numpy() for one in (found if isinstance(found, (tuple, list)) else (found,))]

    return run


def onnx_session(model: str | bytes, threads: int, providers: Sequence[Any] = ON_HOST) -> Any:
    """A session of ONNX Runtime, as the bundle was timed with, for a file or what is in one."""
    try:
        import onnxruntime
    except ImportError as error:
        raise Refused("this model, or parts of it, run in ONNX Runtime; pip install onnxruntime") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=list(providers))


class WholeModel:
    """A model that another runtime runs as a whole, with nothing around it."""

    def __init__(self, run: Any) -> None:
        self._run = run

    def run(self, values: Sequence[Any]) -> list[Any]:
        """All outputs for values that have the shapes and types of the inputs."""
        return list(self._run(values))

    def on_tensors(self, values: Sequence[Any]) -> list[Any]:
        """The same for tensors that have DLPack."""
        return self.run([np.from_dlpack(value) for value in values])
