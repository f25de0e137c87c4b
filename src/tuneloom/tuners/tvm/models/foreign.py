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
    names = [one.name for one in session.get_inputs()]

    def run(*tensors: Any) -> None:
        values = {name: tensor.numpy() for name, tensor in zip(names, tensors, strict=False)}
        for target, value in zip(tensors[len(names) :], session.run(None, values), strict=True):
            target.copyfrom(np.asarray(value, order="C"))

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
