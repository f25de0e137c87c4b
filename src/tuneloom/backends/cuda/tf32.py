"""Which operators on float32 compute in TF32: those for which a type allows it, where it pays.

Libraries round the operands of a convolution only where tensor cores make it faster. Elsewhere rounding
would cost exactness for nothing, most of all in first layers, which have few channels. For convolutions, this
follows where cuDNN 9.19 uses TF32 on an H200; `benchmarks/gpu_tf32.py` tells how often the two agree.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

from tuneloom.backends.cuda.triton.templates.images import Layout
from tuneloom.backends.meaning import CONVOLUTIONS, MULTIPLYING, Meaning, MeaningStep
from tuneloom.compiler.rewriting import name_of, shape_of

TF32 = {"tf32": MULTIPLYING, "tf32_convolutions": (CONVOLUTIONS,)}
"""Types that let operators round float32 to TF32, and what the names of these operators begin with."""
_SAID = ("strides", "groups", "data_layout", "kernel_layout", "out_layout")
_FORWARD = frozenset(("relax.nn.conv1d", "relax.nn.conv2d"))
_FEW_CHANNELS, _FEW_WITH_STRIDES, _FEW_ROWS, _FEW_GROUPS = 36, 256, 5, 7


def step_in_tf32(dtype: str, meaning: Meaning, step: MeaningStep) -> bool:
    """Whether a step of a kernel computes in TF32 in a model of this type."""
    if not step.operator.startswith(TF32.get(dtype, ())):
        return False
    return step.operator not in _FORWARD or convolves_in_tf32(
        step.attributes, meaning.type_of(step.operands[1]).shape, step.result.shape
    )


def call_in_tf32(dtype: str, call: Any) -> bool:
    """Whether a call of an operator in Relax does, the shapes of whose tensors are known."""
    operator = f"relax.{name_of(call)}"
    if not operator.startswith(TF32.get(dtype, ())):
        return False
    filters, result = (shape_of(call.args[1]), shape_of(call)) if operator in _FORWARD else (None, None)
    if filters is None or result is None:
        return True
    attributes = {name: getattr(call.attrs, name) for name in _SAID}
    return convolves_in_tf32(attributes, filters, result)


def convolves_in_tf32(
    attributes: Mapping[str, Any], filters: tuple[int, ...], result: tuple[int, ...]
) -> bool:
    """Whether TF32 pays for a convolution of one or two dimensions, by the shapes of weights and result."""
    weights = Layout(str(attributes["kernel_layout"]), filters)
    outcome = Layout(str(attributes["out_layout"] or attributes["data_layout"]), result)
    channels, taps = weights.extent("I"), weights.extent("H") * weights.extent("W")
    flat = len(attributes["strides"]) == 2 and outcome.extent("H") <= _FEW_ROWS
    if flat or outcome.extent("C") == 1:
        return False
    if int(attributes["groups"]) > 1:
        return channels > 1 and int(attributes["groups"]) > _FEW_GROUPS
    if taps == 1:
        return prod(int(each) for each in attributes["strides"]) == 1 or channels > _FEW_WITH_STRIDES
    return channels > _FEW_CHANNELS
