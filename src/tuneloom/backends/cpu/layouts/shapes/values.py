"""What the layout rewriter knows of a value: plain, blocked, or a convolution still open."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuneloom.backends.cpu.layouts.shapes.windows import Window

Array = NDArray[np.float32]
_WORTH_ROUNDING, _TILES_WELL = 16, 4


@dataclass(slots=True, kw_only=True)
class Value:
    """One tensor of the network; either form is made from the other when asked for."""

    shape: tuple[int, ...]
    plain: Any = None
    blocked: Any = None


@dataclass(slots=True, kw_only=True)
class OpenConv(Value):
    """A convolution that may still take a scale and a bias into its weights."""

    data: Value
    weight: Array = field(repr=False)
    bias: Array | None = None
    window: Window
    groups: int = 1

    @property
    def depthwise(self) -> bool:
        """Whether every output channel sees one input channel, its own."""
        return bool(self.groups == self.weight.shape[0] and self.weight.shape[1] == 1)

    @property
    def skips_points(self) -> bool:
        """Whether every output sees one point of the image, and some points are seen by none."""
        points = Window(kernel=(1, 1), stride=self.window.stride)
        return self.groups == 1 and self.window == points and max(points.stride) > 1

    def scale(self, factor: Array) -> None:
        """Multiply the result per channel."""
        self.weight = self.weight * factor.reshape(-1, 1, 1, 1)
        self.bias = None if self.bias is None else self.bias * factor

    def shift(self, amount: Array) -> None:
        """Add to the result per channel."""
        self.bias = amount if self.bias is None else self.bias + amount


@dataclass(slots=True, kw_only=True)
class OpenConcat(Value):
    """Channels side by side that nobody has put into one tensor yet.

    `sole` says that a single operator reads it; that one may take the parts instead.
    """

    parts: list[Value]
    sole: bool = False


@dataclass(slots=True, kw_only=True)
class Quantised(Value):
    """A value as 8-bit whole numbers, made of floats when it is asked for."""

    source: Value
    scale: Any

    @property
    def origin(self) -> Value:
        return self.source


@dataclass(slots=True, kw_only=True)
class Restored(Value):
    """Floats that stand for 8-bit whole numbers; products may take those instead."""

    whole: Quantised

    @property
    def origin(self) -> Value:
        return self.whole


@dataclass(slots=True, kw_only=True)
class Centred(Value):
    """8-bit whole numbers in 32 bits, less their zero point; products may take the narrow ones instead.

    The zero point is a number, or a tensor of one element where it is only known when the model runs.
    """

    narrow: Value
    dtype: str
    zero: Any = 0

    @property
    def origin(self) -> Value:
        return self.narrow


@dataclass(slots=True, kw_only=True)
class Resigned(Value):
    """8-bit whole numbers moved by 128 into the type with, or without, a sign."""

    source: Value
    dtype: str

    @property
    def origin(self) -> Value:
        return self.source


Derived = Quantised | Restored | Centred | Resigned
"""Values computed element by element from their origin, in whichever form that has."""


def blocks(channels: int, lanes: int) -> int:
    """How many blocks hold this many channels.

    Where channels must be added anyway, a few more make a number that tiles well.
    """
    count = -(-channels // lanes)
    if channels % lanes and count >= _WORTH_ROUNDING:
        return -(-count // _TILES_WELL) * _TILES_WELL
    return count


def pack_channels(values: Any, lanes: int, fill: float = 0.0) -> Any:
    """One value per channel in the shape that broadcasts over a blocked tensor; whole numbers stay whole."""
    size = blocks(len(values), lanes) * lanes
    whole = np.asarray(values).dtype.kind in "iu"
    padded = np.full(size, fill, dtype=np.int32 if whole else np.float32)
    padded[: len(values)] = values
    return padded.reshape(1, -1, 1, 1, lanes)


def pack_weight(weight: Array, lanes: int) -> Array:
    """(out, in, kh, kw) to (out blocks, in blocks, kh, kw, in, out), zeros where padded."""
    out, inside, kh, kw = weight.shape
    ob, ib = blocks(out, lanes), blocks(inside, lanes)
    padded = np.zeros((ob * lanes, ib * lanes, kh, kw), dtype=np.float32)
    padded[:out, :inside] = weight
    split = padded.reshape(ob, lanes, ib, lanes, kh, kw)
    return np.ascontiguousarray(split.transpose(0, 2, 4, 5, 3, 1))


def pack_first_weight(weight: Array, lanes: int) -> Array:
    """(out, in, kh, kw) to (out blocks, in, kh, kw, out)."""
    out, inside, kh, kw = weight.shape
    ob = blocks(out, lanes)
    padded = np.zeros((ob * lanes, inside, kh, kw), dtype=np.float32)
    padded[:out] = weight
    split = padded.reshape(ob, lanes, inside, kh, kw)
    return np.ascontiguousarray(split.transpose(0, 2, 3, 4, 1))


def pack_depthwise_weight(weight: Array, lanes: int) -> Array:
    """(channels, 1, kh, kw) to (blocks, kh, kw, block)."""
    channels, _, kh, kw = weight.shape
    padded = np.zeros((blocks(channels, lanes) * lanes, kh, kw), dtype=np.float32)
    padded[:channels] = weight[:, 0]
    return np.ascontiguousarray(padded.reshape(-1, lanes, kh, kw).transpose(0, 2, 3, 1))


def pack_window(weight: Array, panel: int) -> Array:
    """(kh, kw, in, out) to (out blocks, kh, kw, in, block)."""
    *window, inside, out = weight.shape
    padded = np.zeros((*window, inside, blocks(out, panel) * panel), dtype=np.float32)
    padded[..., :out] = weight
    return np.ascontiguousarray(np.moveaxis(padded.reshape(*window, inside, -1, panel), 3, 0))


def pack_matrix(matrix: Array, lanes: int) -> Array:
    """(…, in, out) to (…, out blocks, in, block)."""
    *lead, inside, out = matrix.shape
    padded = np.zeros((*lead, inside, blocks(out, lanes) * lanes), dtype=np.float32)
    padded[..., :out] = matrix
    return np.ascontiguousarray(np.moveaxis(padded.reshape(*lead, inside, -1, lanes), -2, -3))
