"""Convolutions of volumes: the planes that one plane of the result needs, side by side as channels.

What is left is a convolution of images, with an image for each plane.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.expressions import constant
from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.backends.cpu.layouts.shapes.values import Array, OpenConv, Value, blocks
from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom.compiler.lazy import te, tirx
from tuneloom.compiler.rewriting import shape_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How a window moves through the planes: of how many, how far at a time, and what it reaches."""

    planes: int
    results: int
    kernel: int
    stride: int
    dilation: int
    padding: int

    @property
    def plain(self) -> bool:
        """Whether every result needs its own plane and nothing else."""
        return self.kernel == 1 and self.stride == 1 and self.planes == self.results

    def gathered(self, data: Any) -> Any:
        """Blocked planes as images with the channels of all planes that one result needs."""
        images, count, height, width, lanes = data.shape

        def value(n: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
            plane = n % self.results * self.stride + o // count * self.dilation - self.padding
            there = data[n // self.results * self.planes + plane, o % count, y, x, c]
            inside = tirx.all(plane >= 0, plane < self.planes)
            return tirx.if_then_else(inside, there, tirx.const(0, data.dtype))

        shape = (images // self.planes * self.results, self.kernel * count, height, width, lanes)
        return te.compute(shape, value, name="gathered_planes")


def _conv3d(rewriter: Rewriter, var: Any, call: Any) -> bool:
    attrs, weight, shape = call.attrs, constant(call.args[1]), shape_of(var)
    layouts = (str(attrs.data_layout), str(attrs.kernel_layout))
    if weight is None or shape is None or layouts != ("NCDHW", "OIDHW") or int(attrs.groups) != 1:
        return False
    if str(var.ty.dtype) != "float32" or weight.shape[0] < rewriter.lanes // 2:
        return False
    data = rewriter.value(call.args[0])
    depth, window = _depth(attrs, weight, data.shape[2], shape[2]), _window(attrs, weight)
    planes = rewriter.blocked(data)
    if not depth.plain:
        planes = rewriter.kernel(depth.gathered, [planes], "gathered_planes")
    batch, width = shape[0] * depth.results, blocks(data.shape[1], rewriter.block) * rewriter.block
    images = Value(shape=(batch, depth.kernel * width, *data.shape[3:]), blocked=planes)
    rewriter.bind(var, OpenConv(shape=shape, data=images, weight=_flat(weight, width), window=window))
    return True


def _flat(weight: Array, width: int) -> Array:
    """(out, in, depth, kh, kw) to (out, depth × in, kh, kw), as many channels in each plane as are stored."""
    out, inside, depth, kh, kw = weight.shape
    padded = np.zeros((out, depth, width, kh, kw), dtype=np.float32)
    padded[:, :, :inside] = weight.transpose(0, 2, 1, 3, 4)
    return padded.reshape(out, depth * width, kh, kw)


def _depth(attrs: Any, weight: Array, planes: int, results: int) -> Depth:
    return Depth(
        planes=planes,
        results=results,
        kernel=weight.shape[2],
        stride=int(attrs.strides[0]),
        dilation=int(attrs.dilation[0]),
        padding=int(attrs.padding[0]),
    )


def _window(attrs: Any, weight: Array) -> Window:
    _, top, left, _, bottom, right = (int(size) for size in attrs.padding)
    return Window(
        kernel=(weight.shape[3], weight.shape[4]),
        stride=(int(attrs.strides[1]), int(attrs.strides[2])),
        dilation=(int(attrs.dilation[1]), int(attrs.dilation[2])),
        padding=(top, left, bottom, right),
    )


RULES: dict[str, Rule] = {"relax.nn.conv3d": _conv3d}
