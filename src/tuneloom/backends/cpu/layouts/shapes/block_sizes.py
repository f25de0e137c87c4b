"""How many channels of an image lie together."""

import math
from typing import Any

from tuneloom.compiler.lazy import relax

_NARROW_LANES = 4
_MOST_ADDED = 0.02
_CONVOLUTIONS = ("relax.nn.conv1d", "relax.nn.conv2d", "relax.nn.conv2d_transpose", "relax.nn.conv3d")


def block_size(module: Any, lanes: int) -> int:
    """One vector of channels, or two where vectors are narrow and hardly a channel is added for it.

    A convolution reads all blocks of channels side by side: the fewer they are, the fewer pages and lines
    of the cache it needs at a time. Whole numbers keep single vectors, for which their instructions are made.
    """
    found = list(_convolutions(module["main"]))
    if lanes > _NARROW_LANES or not found or any(str(call.ty.dtype) != "float32" for call in found):
        return lanes
    one, two = (sum(_work(call, size) for call in found) for size in (lanes, 2 * lanes))
    return 2 * lanes if two <= (1 + _MOST_ADDED) * one else lanes


def _convolutions(function: Any) -> list[Any]:
    blocks = function.body.blocks if isinstance(function.body, relax.SeqExpr) else []
    values = [binding.value for block in blocks for binding in block.bindings]
    return [value for value in values if getattr(getattr(value, "op", None), "name", "") in _CONVOLUTIONS]


def _work(call: Any, block: int) -> float:
    """Products of a convolution whose channels are filled up to whole blocks; those of a picture are not."""
    data, weight, result = map(_static, (call.args[0], call.args[1], call))
    if min(map(len, (data, weight, result))) < 3:
        return 0.0
    inside, outside = (-(-channels // block) * block for channels in (data[1], result[1]))
    inside = data[1] if data[1] < _NARROW_LANES else inside
    return inside * outside / int(call.attrs.groups) * math.prod(result[2:]) * math.prod(weight[2:])


def _static(expression: Any) -> list[int]:
    shape = getattr(expression.ty, "shape", None)
    return [int(getattr(extent, "value", 1)) for extent in shape] if shape is not None else []
