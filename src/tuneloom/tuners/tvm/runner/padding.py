"""Values that are smaller than what a program takes: zeros after their end, cut off its outputs."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from tuneloom.tuners.tvm.runner.refused import Refused
from tuneloom.tuners.tvm.runner.tensors import is_tensor
from tuneloom.tuners.tvm.runner.weights import ALIGNMENT


def fits(small: Sequence[int], large: Sequence[int]) -> bool:
    """Whether a value of one shape can be padded to another."""
    return len(small) == len(large) and all(0 < a <= b for a, b in zip(small, large, strict=True))


def padded_to(value: Any, shape: Sequence[int], dtype: str) -> Any:
    """A value in the type and shape of an input, zeros after its end."""
    typed = value.astype(dtype, copy=False)
    if value.shape == tuple(shape):
        return typed
    whole = np.zeros(shape, typed.dtype)  # np.pad takes longer than a small model
    whole[tuple(map(slice, value.shape))] = typed
    return whole


def filled(tensor: Any, shape: Sequence[int]) -> Any:
    """A tensor of PyTorch's with zeros after its end."""
    if not hasattr(tensor, "new_zeros"):
        if list(tensor.shape) == list(shape):
            return tensor
        raise Refused("only arrays and PyTorch's tensors can be padded or divided; give one of these")
    if list(tensor.shape) == list(shape):
        whole = tensor.contiguous()
        return whole if whole.data_ptr() % ALIGNMENT == 0 else whole.clone()
    whole = tensor.new_zeros(tuple(shape))
    whole[tuple(map(slice, tensor.shape))] = tensor
    return whole


def cut(output: Any, given: Sequence[Sequence[int]], shapes: Sequence[Sequence[int]]) -> Any:
    """An output without what padding added: on axes that have the size of a padded axis of an input."""
    for small, large in zip(given, shapes, strict=True):
        for axis, (own, size) in enumerate(zip(small, large, strict=True)):
            if own != size and axis < output.ndim and output.shape[axis] == size:
                output = output[(slice(None),) * axis + (slice(own),)]
    return output


def joined(parts: Sequence[Any], axes: dict[int, int]) -> Any:
    """The outputs of several runs as one."""
    if len(parts) == 1:
        return parts[0]
    axis = next(iter(axes))
    if is_tensor(parts[0]):
        return sys.modules["torch"].cat(list(parts), axis)
    return np.concatenate(parts, axis)
