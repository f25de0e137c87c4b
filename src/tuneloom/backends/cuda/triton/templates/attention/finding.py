"""Attention in a meaning, as Relax's operator or written out."""

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tuneloom.backends.cuda.gpu import Gpu
from tuneloom.backends.cuda.triton.writing import dependants
from tuneloom.backends.meaning import Meaning, MeaningStep

_OPERATORS = frozenset(("relax.nn.attention", "relax.nn.attention_bias"))
_LEAST = 16
WIDEST = 256
"""Tiles hold heads as a whole; wider ones do not fit."""


@dataclass(frozen=True, slots=True)
class Attention:
    """Attention in a meaning, written as one operator or as two products with a softmax between.

    `scores` is the value of the first product (None for the operator), `weights` the softmax,
    `result` what the second product or the operator computes.
    """

    meaning: Meaning
    result: int
    scores: int | None
    weights: int | None
    dtype: str
    batch: int
    queries: int
    keys: int
    width: int
    value_width: int

    @property
    def step(self) -> MeaningStep:
        """The operator or the second product."""
        step = self.meaning.step_of(self.result)
        assert step is not None
        return step

    @property
    def first(self) -> MeaningStep:
        """The step that the queries and keys are operands of."""
        step = self.meaning.step_of(self.result if self.scores is None else self.scores)
        assert step is not None
        return step

    @property
    def values(self) -> int:
        """What the weights are multiplied with."""
        return self.step.operands[2 if self.scores is None else 1]

    @property
    def causal(self) -> int | None:
        """How far past its own number a row sees keys; None if it sees all."""
        how = self.step.attributes.get("causal_mask") if self.scores is None else None
        shift = {"TopLeft": 0, "BottomRight": self.keys - self.queries}.get(str(how)) if how else None
        return None if shift is None or shift >= self.keys - 1 else shift

    def shape(self, value: int) -> tuple[int, ...]:
        """The shape of a value."""
        return self.meaning.type_of(value).shape


@lru_cache(maxsize=256)
def _found(meaning: Meaning) -> Attention | None:
    for value, step in enumerate(meaning.steps, len(meaning.inputs)):
        if step.operator in _OPERATORS:
            return _operator(meaning, value, step)
        if step.operator == "relax.nn.softmax":
            return _products(meaning, value, step)
    return None


def _operator(meaning: Meaning, value: int, step: MeaningStep) -> Attention | None:
    q, k, v = (meaning.type_of(each) for each in step.operands[:3])
    if len({q.dtype, k.dtype, v.dtype}) > 1 or step.attributes.get("window_size") is not None:
        return None
    batch, queries, heads, width = q.shape
    if heads % k.shape[2]:
        return None
    return Attention(
        meaning, value, None, None, q.dtype, batch * heads, queries, k.shape[1], width, v.shape[3]
    )


def _products(meaning: Meaning, weights: int, softmax: MeaningStep) -> Attention | None:
    count = len(meaning.inputs)
    products = [n for n, step in enumerate(meaning.steps, count) if step.operator == "relax.matmul"]
    rank = len(softmax.result.shape)
    if len(products) != 2 or rank < 2 or softmax.attributes.get("axis", -1) % rank != rank - 1:
        return None
    scores, result = products
    first, last = meaning.steps[scores - count], meaning.steps[result - count]
    behind = dependants(meaning, frozenset((weights,)))
    if scores > weights or last.operands[1] in behind or _uncast(meaning, last.operands[0]) != weights:
        return None
    *outer, queries, keys = first.result.shape
    types = {meaning.type_of(each).dtype for each in (*first.operands, last.operands[1])}
    if (
        len(types) > 1
        or first.result.shape != softmax.result.shape
        or last.result.shape[:-1] != (*outer, queries)
    ):
        return None
    width = meaning.type_of(first.operands[0]).shape[-1]
    return Attention(
        meaning,
        result,
        scores,
        weights,
        types.pop(),
        prod(outer),
        queries,
        keys,
        width,
        last.result.shape[-1],
    )


def _uncast(meaning: Meaning, value: int) -> int:
    """The value before it was cast to other types."""
    step = meaning.step_of(value)
    return (
        _uncast(meaning, step.operands[0]) if step is not None and step.operator == "relax.astype" else value
    )


def attention_of(meaning: Meaning, gpu: Gpu) -> Attention | None:
    """The attention of a meaning, if the GPU multiplies its type and a row fits."""
    found = _found(meaning)
    floats = ("float16", "bfloat16", "float32")
    if found is None or found.dtype not in floats or not gpu.computes(found.dtype):
        return None
    return found if max(found.width, found.value_width) <= WIDEST else None


def padded(width: int) -> int:
    """The power of two that a tile needs for a head of this width."""
    return max(_LEAST, 1 << (width - 1).bit_length())
