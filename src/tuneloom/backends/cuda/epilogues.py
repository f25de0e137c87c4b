"""What follows a product or convolution, as far as libraries do it: bias, residual, one activation."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import prod

from tuneloom.backends.meaning import Meaning, MeaningStep

_PASSED = frozenset(("relax.reshape", "relax.expand_dims", "relax.squeeze", "relax.astype"))

Activations = Callable[[MeaningStep, str], int]
"""A library's number of the activation that a step is, given the type of the result; 0 if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Epilogue:
    """What the library does with its sums; `bias` and `residual` are the numbers of inputs."""

    bias: int | None = None
    residual: int | None = None
    activation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Summed:
    """The value of a kernel that a library sums up, its type, and how many channels its last axis has."""

    meaning: Meaning
    value: int
    dtype: str
    channels: int
    takes_bias: bool
    activations: Activations


def epilogue_of(found: Summed) -> Epilogue | None:
    """What follows the sums; None if the library can't do it, which rounds once, at the end."""
    meaning, value, epilogue = found.meaning, found.value, Epilogue()
    for number, step in enumerate(meaning.steps[value - len(meaning.inputs) + 1 :], value + 1):
        if value not in step.operands and _input(meaning, number) is not None:
            continue
        if step.result.dtype not in (found.dtype, "float32"):
            return None
        if not _passes(step, value):
            grown = _with(epilogue, found, step, value)
            if grown is None:
                return None
            epilogue = grown
        value = number
    return epilogue if meaning.outputs == (value,) else None


def _with(epilogue: Epilogue, found: Summed, step: MeaningStep, value: int) -> Epilogue | None:
    """An epilogue with one more step behind it."""
    meaning = found.meaning
    result = meaning.type_of(meaning.outputs[0]).dtype
    added = _added(meaning, step, value)
    if epilogue.activation:
        return None
    if added is None:
        activation = found.activations(step, result) if step.operands == (value,) else 0
        return replace(epilogue, activation=activation) if activation else None
    if epilogue.bias is None and _is_bias(found, added):
        return replace(epilogue, bias=added)
    tensor = meaning.inputs[added]
    fits = (tensor.shape, tensor.dtype) == (meaning.type_of(value).shape, result)
    return replace(epilogue, residual=added) if fits and epilogue.residual is None else None


def _passes(step: MeaningStep, value: int) -> bool:
    """Whether a step only shows a value in another shape or type."""
    return step.operator in _PASSED and step.operands == (value,)


def _added(meaning: Meaning, step: MeaningStep, value: int) -> int | None:
    """The input that a step adds to a value."""
    if step.operator != "relax.add" or value not in step.operands:
        return None
    return _input(meaning, step.operands[1] if step.operands[0] == value else step.operands[0])


def _input(meaning: Meaning, value: int) -> int | None:
    """The input that a value is, perhaps in another type."""
    while (step := meaning.step_of(value)) is not None and step.operator == "relax.astype":
        (value,) = step.operands
    return value if step is None else None


def _is_bias(found: Summed, added: int) -> bool:
    shape, dtype = found.meaning.inputs[added].shape, found.meaning.inputs[added].dtype
    vector = shape[-1:] == (found.channels,) and prod(shape) == found.channels
    return vector and found.takes_bias and dtype in (found.dtype, "float32")
