"""The limits of NonMaxSuppression, as ONNX means them and in the form that TVM takes."""

from typing import Any

import numpy as np

from tuneloom.compiler.lazy import relax
from tuneloom.tuners.tvm.importing.onnx.converters.constants import array

SMALLEST = 1e-30
FARTHEST = 1e7


def limited(inputs: Any) -> Any:
    """TVM drops a box that overlaps as much as is allowed, has other defaults, spares scores below zero."""
    boxes, scores, most, overlap, least = [*inputs, None, None, None][:5]
    lowest = _limit(least, -np.inf)
    if lowest < 0:
        scores, lowest = _above_zero(scores), _number_above_zero(lowest)
    return type(inputs)([boxes, scores, most, _scalar(_just_above(_limit(overlap, 0.0))), _scalar(lowest)])


def _limit(given: Any, otherwise: float) -> float:
    known = array(given)
    return otherwise if known is None else float(known.item())


def _just_above(overlap: float) -> float:
    """The next number; the smallest ones are taken for none at all."""
    above = np.nextafter(np.float32(overlap), np.float32(np.inf))
    return max(float(above), float(np.finfo(np.float32).tiny))


def _above_zero(scores: Any) -> Any:
    """Scores in the same order, all of them positive."""
    distance = relax.op.minimum(relax.op.subtract(_scalar(1.0), scores), _scalar(FARTHEST))
    return relax.op.where(
        relax.op.greater(scores, _scalar(SMALLEST)), scores, relax.op.divide(_scalar(SMALLEST), distance)
    )


def _number_above_zero(limit: float) -> float:
    """A limit among scores that were made positive; none where there was none."""
    return SMALLEST / (1 - limit) if 1 - limit < FARTHEST else 0.0


def _scalar(value: float) -> Any:
    return relax.const(np.float32(value), "float32")
