"""Parts of a model that another runtime runs, called by the compiled program like kernels."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from tuneloom.compiler.lazy import tvm_ffi
from tuneloom.errors import BundleError, ModelError, reason_of
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.importing.relax import ForeignPart
from tuneloom.tuners.tvm.models.compiling.running import timer_of
from tuneloom.tuners.tvm.runner.parts import run_by_interpreter, run_by_session
from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.runtimes import WholeModel, onnx_session, run_by


class ForeignModel(WholeModel):
    """A model that another runtime runs as a whole, as bundles run it."""

    def __init__(
        self, part: ForeignPart, threads: int, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> None:
        try:
            super().__init__(run_by(part.runtime, part.content, entry_of(inputs, outputs), threads))
        except Refused as error:
            raise BundleError(str(error)) from error

    def timer(self, values: Sequence[Any]) -> Callable[[], float]:
        """A function that runs the model once on these values and returns the seconds."""
        return timer_of(lambda: self.run(values))


def entry_of(inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> dict[str, Any]:
    """The interface of a model as a manifest has it."""
    return {"inputs": [asdict(info) for info in inputs], "outputs": [asdict(info) for info in outputs]}


def provide(parts: Sequence[ForeignPart], threads: int = 1) -> None:
    """Make the functions of these parts known to this process; do it before the program is loaded."""
    for part in parts:
        tvm_ffi.register_global_func(part.function, _function(part, threads), override=True)


def _function(part: ForeignPart, threads: int) -> Any:
    """A function that fills the tensors it gets for its outputs, or returns them if it gets none."""
    if part.runtime == "tflite":
        return _litert(part.content, threads)
    return run_by_session(opened(part.content, threads))


def _litert(content: bytes, threads: int) -> Any:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise BundleError("parts of this model run in LiteRT; pip install ai-edge-litert") from error
    return run_by_interpreter(Interpreter(model_content=content, num_threads=threads))


def opened(content: bytes, threads: int) -> Any:
    """A session of ONNX Runtime; raises ModelError in its own words when it refuses the model."""
    try:
        return onnx_session(content, threads)
    except Refused as error:
        raise BundleError(
            "parts of this model run in ONNX Runtime; install it: pip install 'tuneloom[onnxruntime]'"
        ) from error
    except Exception as error:
        raise ModelError(f"ONNX Runtime refuses a part of the model: {reason_of(error)}") from error
