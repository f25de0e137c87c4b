"""What a model's own runtime takes for it, as a goal to measure against."""

from statistics import median

from tuneloom.errors import TargetError, TuneloomError
from tuneloom.model import TensorInfo
from tuneloom.tuners.tvm.boards.bench import board_session
from tuneloom.tuners.tvm.models.compiling.running import timed_for, timer_of
from tuneloom.tuners.tvm.models.rivals.runtimes import open_rival

_WARM_UPS = 3
_SECONDS = 2.0


def reference_s(
    model: str, inputs: tuple[TensorInfo, ...], outputs: tuple[TensorInfo, ...], threads: int, seed: int
) -> float | TuneloomError:
    """The median of single runs of a model in ONNX Runtime, in seconds; an expected error is a value."""
    from tuneloom.tuners.tvm.models.precision.samples import seeded_inputs

    if board_session() is not None:
        return TargetError("a board has no ONNX Runtime to be compared with; give a goal in milliseconds")
    try:
        run = open_rival("onnxruntime", model, inputs, outputs, threads)
    except TuneloomError as error:
        return error
    values = seeded_inputs(inputs, seed)
    for _ in range(_WARM_UPS):
        run(values)
    return median(timed_for(timer_of(lambda: run(values)), _SECONDS))
