"""Parts of a model that ONNX Runtime runs, called by the compiled program like kernels."""

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
    session = opened(part.content, threads)
    given, made = session.get_inputs(), session.get_outputs()
    names = [one.name for one in (*given, *made)]
    binding = session.io_binding()
    binds = [binding.bind_input] * len(given) + [binding.bind_output] * len(made)

    def run(*tensors: Any) -> None:
        """Everything stays where it is: the session reads and writes the tensors of the program."""
        for bind, name, tensor in zip(binds, names, tensors, strict=True):
            there = np.from_dlpack(tensor)
            bind(name, "cpu", 0, there.dtype, there.shape, there.ctypes.data)
        session.run_with_iobinding(binding)

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
