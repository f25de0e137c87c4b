"""What a fused kernel computes, as a small graph of operators: kept beside its loops."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

VIEWS = frozenset(
    f"relax.{name}"
    for name in (
        *("reshape", "flatten", "squeeze", "expand_dims"),
        *("permute_dims", "broadcast_to", "strided_slice"),
    )
)
"""Operators that only say where elements are."""

CONVOLUTIONS = "relax.nn.conv"
"""What the names of all convolutions begin with."""
MULTIPLYING = ("relax.matmul", "relax.nn.attention", CONVOLUTIONS)
"""What the names of all operators that multiply tensors begin with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorType:
    """Shape and number type of a tensor."""

    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeaningStep:
    """One operator, by Relax's name; `operands` count through the inputs first, then through the steps.

    Arguments that are no tensors (the bounds of `relax.clip`, the axes of a sum) are attributes.
    A scalar constant is a step of its own, `relax.const`, with the attribute `value` and no operands.
    """

    operator: str
    operands: tuple[int, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    result: TensorType


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """Steps in the order in which they are computed; every operand comes before the step that reads it."""

    inputs: tuple[TensorType, ...]
    steps: tuple[MeaningStep, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        for place, step in enumerate(self.steps, len(self.inputs)):
            if any(not 0 <= operand < place for operand in step.operands):
                raise ValueError(f"{step.operator} reads what is not computed before it: {step.operands}")
        if any(not 0 <= output < len(self.inputs) + len(self.steps) for output in self.outputs):
            raise ValueError(f"no such outputs: {self.outputs}")

    def type_of(self, value: int) -> TensorType:
        """The type of an input or of a step's result."""
        count = len(self.inputs)
        return self.inputs[value] if value < count else self.steps[value - count].result

    def step_of(self, value: int) -> MeaningStep | None:
        """The step that computes a value; None for inputs."""
        return self.steps[value - len(self.inputs)] if value >= len(self.inputs) else None

    def to_json(self) -> str:
        """The meaning as one line of text, the same for equal meanings."""
        return json.dumps(
            {
                "inputs": [_type_data(each) for each in self.inputs],
                "steps": [
                    [each.operator, list(each.operands), dict(each.attributes), _type_data(each.result)]
                    for each in self.steps
                ],
                "outputs": list(self.outputs),
            },
            sort_keys=True,
        )

    @classmethod
    def from_json(cls, text: str) -> "Meaning":
        """Read what `to_json` wrote."""
        data = json.loads(text)
        return cls(
            inputs=tuple(_type_of(each) for each in data["inputs"]),
            steps=tuple(
                MeaningStep(
                    operator=name, operands=tuple(operands), attributes=attributes, result=_type_of(result)
                )
                for name, operands, attributes, result in data["steps"]
            ),
            outputs=tuple(data["outputs"]),
        )


def _type_data(tensor: TensorType) -> list[Any]:
    return [list(tensor.shape), tensor.dtype]


def _type_of(data: list[Any]) -> TensorType:
    shape, dtype = data
    return TensorType(shape=tuple(shape), dtype=dtype)
