"""Parts of a model that another runtime runs, called by the compiled program like kernels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.runtimes import onnx_session


def provide(folder: Path, parts: Sequence[dict[str, Any]], threads: int = 1) -> None:
    """Make the parts of the model that another runtime runs known to TVM, before it loads the rest."""
    if not parts:
        return
    import tvm_ffi

    for part in parts:
        path = folder / Path(part["file"]).name
        run = (litert_part if path.suffix == ".tflite" else onnx_part)(path, threads)
        tvm_ffi.register_global_func(part["function"], run, override=True)


def onnx_part(path: Path, threads: int) -> Any:
    """A function of TVM that runs a part in ONNX Runtime."""
    return run_by_session(onnx_session(str(path), threads))


def litert_part(path: Path, threads: int) -> Any:
    """The same for a part that LiteRT runs."""
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise Refused("parts of this model run in LiteRT; pip install ai-edge-litert") from error
    return run_by_interpreter(Interpreter(model_path=str(path), num_threads=threads))


def run_by_session(session: Any) -> Any:
    """A function of TVM that a session of ONNX Runtime runs: it gets the inputs, then where the outputs go.

    It returns the outputs instead if it is not told where they go.
    """
    given, made = session.get_inputs(), session.get_outputs()
    names = [one.name for one in (*given, *made)]
    binding = session.io_binding()
    binds = [binding.bind_input] * len(given) + [binding.bind_output] * len(made)

    def fill(*tensors: Any) -> None:
        """Everything stays where it is: the session reads and writes the tensors of the program."""
        for bind, name, tensor in zip(binds, names, tensors, strict=True):
            there = np.from_dlpack(tensor)
            bind(name, "cpu", 0, there.dtype, there.shape, there.ctypes.data)
        session.run_with_iobinding(binding)

    def give(*tensors: Any) -> Any:
        values = [tensor.numpy() for tensor in tensors]
        return returned(session.run(None, dict(zip(names, values, strict=False))))

    return lambda *tensors: (fill if len(tensors) > len(given) else give)(*tensors)


def run_by_interpreter(interpreter: Any) -> Any:
    """A function of TVM that an interpreter of LiteRT runs: it gets the inputs, then where the outputs go."""
    inputs = [detail["index"] for detail in interpreter.get_input_details()]
    outputs = [detail["index"] for detail in interpreter.get_output_details()]

    def run(*tensors: Any) -> None:
        values = [tensor.numpy() for tensor in tensors[: len(inputs)]]
        for place, value in zip(inputs, values, strict=True):
            interpreter.resize_tensor_input(place, value.shape)
        interpreter.allocate_tensors()  # nothing happens where shapes are as before
        for place, value in zip(inputs, values, strict=True):
            interpreter.set_tensor(place, value)
        interpreter.invoke()
        for place, target in zip(outputs, tensors[len(inputs) :], strict=True):
            target.copyfrom(interpreter.get_tensor(place))

    return run


def returned(values: Sequence[Any]) -> Any:
    """Outputs whose sizes depend on data: no memory could be planned for them."""
    import tvm

    made = [tvm.runtime.tensor(np.asarray(value, order="C")) for value in values]
    return made[0] if len(made) == 1 else made
