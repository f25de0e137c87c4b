"""Parts of a model that another runtime runs, called by the compiled program like kernels."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tuneloom.errors import BundleError, ModelError
from tuneloom.tuners.tvm.importing.relax import ForeignPart


def provide(parts: Sequence[ForeignPart], threads: int = 1) -> None:
    """Make the functions of these parts known to this process; do it before the program is loaded."""
    import tvm_ffi

    for part in parts:
        tvm_ffi.register_global_func(part.function, _runner(part, threads), override=True)


def _runner(part: ForeignPart, threads: int) -> Any:
    """A function that fills the tensors it gets for its outputs, or returns them if it gets none."""
    return (_litert if part.runtime == "tflite" else _onnxruntime)(part.content, threads)


def _onnxruntime(content: bytes, threads: int) -> Any:
    session = opened(content, threads)
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
        return _returned(session.run(None, dict(zip(names, values, strict=False))))

    return lambda *tensors: (fill if len(tensors) > len(given) else give)(*tensors)


def _returned(values: Sequence[Any]) -> Any:
    """Outputs whose sizes depend on data: no memory could be planned for them."""
    from tvm.runtime import tensor

    made = [tensor(np.asarray(value, order="C")) for value in values]
    return made[0] if len(made) == 1 else made


def _litert(content: bytes, threads: int) -> Any:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise BundleError("parts of this model run in LiteRT; pip install ai-edge-litert") from error
    interpreter = Interpreter(model_content=content, num_threads=threads)
    inputs, outputs = (
        [detail["index"] for detail in details]
        for details in (interpreter.get_input_details(), interpreter.get_output_details())
    )

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


def opened(content: bytes, threads: int) -> Any:
    """A session of ONNX Runtime; raises ModelError in its own words when it refuses the model."""
    try:
        import onnxruntime
    except ImportError as error:
        raise BundleError(
            "parts of this model run in ONNX Runtime; install it: pip install 'tuneloom[onnxruntime]'"
        ) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        raise ModelError(
            f"ONNX Runtime refuses a part of the model: {lines[-1] if lines else error}"
        ) from error
