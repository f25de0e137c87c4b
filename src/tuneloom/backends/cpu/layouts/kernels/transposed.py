"""Transposed convolutions without the zeros between: one small convolution for each phase.

With stride s, every s-th point of the result along an axis sees the same taps of the
kernel. The points of one such phase are an ordinary convolution of the image; the
phases lie side by side and are interleaved in the end. With few outputs, which leave most
of a vector empty, the phases of all outputs are the channels of one convolution.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.kernels.compute import pad
from tuneloom.backends.cpu.layouts.shapes.values import Array, blocks
from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom.compiler.lazy import te


@dataclass(frozen=True, slots=True, kw_only=True)
class Transposed:
    """A transposed convolution's kernel size, stride, and padding as (top, left, bottom, right)."""

    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]

    def taps(self, axis: int) -> int:
        """How many points of the image a point of the result sees along an axis, at most."""
        return -(-self.kernel[axis] // self.stride[axis])

    def pack(self, weight: Array, lanes: int) -> Array:
        """(in, out, kh, kw) to (out blocks, in blocks, phase y, phase x, tap y, tap x, in, out)."""
        inside, out = weight.shape[:2]
        ib, ob = blocks(inside, lanes), blocks(out, lanes)
        phases = self._phases(weight, ib * lanes, ob * lanes)
        split = phases.reshape(ib, lanes, ob, lanes, *phases.shape[2:])
        return np.ascontiguousarray(split.transpose(2, 0, 5, 7, 4, 6, 1, 3))

    def as_ordinary(self, weight: Array) -> Array:
        """(in, out, kh, kw) to the weights (out × phase y × phase x, in, tap y, tap x) of a convolution."""
        inside, out = weight.shape[:2]
        forwards = self._phases(weight, inside, out)[:, :, ::-1, :, ::-1, :]
        ordered = forwards.transpose(1, 3, 5, 0, 2, 4)
        return ordered.reshape(-1, inside, self.taps(0), self.taps(1))

    def window(self, image: tuple[int, int], size: tuple[int, int]) -> Window:
        """How that convolution moves over an image, for a result of this size."""
        ty, tx = self.taps(0), self.taps(1)
        rows, cols = _points(self, size)
        after = (max(0, rows - image[0]), max(0, cols - image[1]))
        return Window(kernel=(ty, tx), padding=(ty - 1, tx - 1, *after))

    def _phases(self, weight: Array, inside: int, out: int) -> Array:
        """Weights as (in, out, tap y, phase y, tap x, phase x), zeros where there are none."""
        (sy, sx), (ty, tx) = self.stride, (self.taps(0), self.taps(1))
        whole = np.zeros((inside, out, ty * sy, tx * sx), dtype=np.float32)
        whole[tuple(map(slice, weight.shape))] = weight
        return whole.reshape(inside, out, ty, sy, tx, sx)


def conv2d_transposed(data: Any, weight: Any, form: Transposed, size: tuple[int, int]) -> Any:
    """Blocked data to (batch, out blocks, phase y, phase x, rows, cols, block), phases apart."""
    batch, in_blocks, _, _, inner = data.shape
    out_blocks, lanes = weight.shape[0], weight.shape[-1]
    ty, tx = form.taps(0), form.taps(1)
    rows, cols = _points(form, size)
    padded = pad(data, form.window((int(data.shape[2]), int(data.shape[3])), size), (2, 3))
    k, ki = te.reduce_axis((0, in_blocks), name="k"), te.reduce_axis((0, inner), name="ki")
    ky, kx = te.reduce_axis((0, ty), name="ky"), te.reduce_axis((0, tx), name="kx")
    return te.compute(
        (batch, out_blocks, *form.stride, rows, cols, lanes),
        lambda n, o, py, px, y, x, c: te.sum(
            padded[n, k, y + (ty - 1) - ky, x + (tx - 1) - kx, ki] * weight[o, k, py, px, ky, kx, ki, c],
            axis=[k, ky, kx, ki],
        ),
        name="conv2d_transposed",
    )


def interleaved(data: Any, form: Transposed, size: tuple[int, int]) -> Any:
    """The phases of `conv2d_transposed` as one blocked image."""
    batch, blocks_, _, _, _, _, lanes = data.shape
    (sy, sx), (top, left, *_) = form.stride, form.padding

    def value(n: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
        v, u = y + top, x + left
        return data[n, o, v % sy, u % sx, v // sy, u // sx, c]

    return te.compute((batch, blocks_, *size, lanes), value, name="interleaved")


def woven(data: Any, form: Transposed, size: tuple[int, int], channels: int) -> Any:
    """Phases that are channels of a blocked image as a plain one."""
    batch, _, _, _, lanes = data.shape
    (sy, sx), (top, left, *_) = form.stride, form.padding

    def value(n: Any, o: Any, y: Any, x: Any) -> Any:
        v, u = y + top, x + left
        channel = (o * sy + v % sy) * sx + u % sx
        return data[n, channel // lanes, v // sy, u // sx, channel % lanes]

    return te.compute((batch, channels, *size), value, name="woven")


def _points(form: Transposed, size: tuple[int, int]) -> tuple[int, int]:
    """How many points of each phase the result needs."""
    top, left, *_ = form.padding
    rows = (size[0] - 1 + top) // form.stride[0] + 1
    cols = (size[1] - 1 + left) // form.stride[1] + 1
    return rows, cols
