"""Kernels on blocked tensors, written as tensor expressions.

A blocked tensor has the shape (batch, channels / block, height, width, block): the
last axis fills one vector register. Weights are stored in the order in which the
innermost loops read them.
"""

from typing import Any

from tuneloom.backends.cpu.layouts.kernels.extremes import fold_of
from tuneloom.backends.cpu.layouts.shapes.groups import Groups
from tuneloom.backends.cpu.layouts.shapes.matrices import padded_rows
from tuneloom.backends.cpu.layouts.shapes.skipping import TEAM
from tuneloom.backends.cpu.layouts.shapes.uneven_groups import UnevenGroups
from tuneloom.backends.cpu.layouts.shapes.values import blocks as block_count
from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom.compiler.lazy import te, tirx, topi

_SHORT_ROW = 16
_ROW_TILES = range(4, 15)


def conv2d(data: Any, weight: Any, window: Window, groups: Groups | None = None) -> Any:
    """Blocked data with weights (out blocks, in blocks that one needs, kh, kw, in, out)."""
    batch, _, height, width, _ = data.shape
    out_blocks, in_blocks, _, _, inner, lanes = weight.shape
    padded = pad(data, window, (2, 3))
    rows, cols = window.output_size(int(height), int(width))
    k = te.reduce_axis((0, in_blocks), name="k")
    kh, kw = _window_axes(window)
    ki = te.reduce_axis((0, inner), name="ki")

    def first_block(o: Any) -> Any:
        return groups.first_block(o) if groups is not None else 0

    whole = te.compute(
        (batch, out_blocks, rows, whole_columns(cols), lanes),
        lambda n, o, y, x, c: te.sum(
            padded[n, first_block(o) + k, *window.place(y, _within(x, cols), kh, kw), ki]
            * weight[o, k, kh, kw, ki, c],
            axis=[k, kh, kw, ki],
        ),
        name="conv2d",
    )
    return _trimmed(whole, cols)


def conv2d_in_groups(data: Any, weight: Any, window: Window, uneven: UnevenGroups) -> Any:
    """Blocked data with weights (out blocks, groups, steps, kh, kw, in, out)."""
    batch, _, height, width, _ = data.shape
    out_blocks, groups, steps, _, _, inner, lanes = weight.shape
    padded = pad(data, window, (2, 3))
    rows, cols = window.output_size(int(height), int(width))
    g, k = te.reduce_axis((0, groups), name="g"), te.reduce_axis((0, steps), name="k")
    kh, kw = _window_axes(window)
    ki = te.reduce_axis((0, inner), name="ki")

    def product(n: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
        channel = uneven.channel(o, g, k * inner + ki)
        place = window.place(y, _within(x, cols), kh, kw)
        value = padded[n, channel // lanes, *place, channel % lanes] * weight[o, g, k, kh, kw, ki, c]
        return tirx.if_then_else(g < uneven.read_by(o), value, tirx.const(0, data.dtype))

    whole = te.compute(
        (batch, out_blocks, rows, whole_columns(cols), lanes),
        lambda *at: te.sum(product(*at), axis=[g, k, kh, kw, ki]),
        name="conv2d",
        attrs={TEAM: uneven.team},
    )
    return _trimmed(whole, cols)


def conv2d_from_plain(data: Any, weight: Any, window: Window) -> Any:
    """Plain data with weights (out blocks, in, kh, kw, out): the first layer of most networks."""
    if len(data.shape) == 3:
        data = topi.expand_dims(data, 2)
    batch, channels, height, width = data.shape
    out_blocks, _, _, _, lanes = weight.shape
    padded = pad(data, window, (2, 3))
    rows, cols = window.output_size(int(height), int(width))
    k = te.reduce_axis((0, channels), name="k")
    kh, kw = _window_axes(window)
    whole = te.compute(
        (batch, out_blocks, rows, whole_columns(cols), lanes),
        lambda n, o, y, x, c: te.sum(
            padded[n, k, *window.place(y, _within(x, cols), kh, kw)] * weight[o, k, kh, kw, c],
            axis=[k, kh, kw],
        ),
        name="conv2d",
    )
    return _trimmed(whole, cols)


def conv2d_channels_last(data: Any, panels: Any, window: Window, width: int) -> Any:
    """Images (batch, height, width, in) with weights (out blocks, kh, kw, in, block); `width` channels."""
    batch, height, across, channels = data.shape
    count, _, _, _, panel = panels.shape
    padded = pad(data, window, (1, 2))
    rows, cols = window.output_size(int(height), int(across))
    kh, kw = _window_axes(window)
    k = te.reduce_axis((0, channels), name="k")
    made = (batch, rows, whole_columns(cols), int(count) * int(panel))
    whole = te.compute(
        made,
        lambda n, y, x, c: te.sum(
            padded[n, *window.place(y, _within(x, cols), kh, kw), k]
            * panels[c // panel, kh, kw, k, c % panel],
            axis=[kh, kw, k],
        ),
        name="conv2d",
    )
    wanted = (batch, rows, cols, width)
    if made == wanted:
        return whole
    return te.compute(wanted, lambda *at: whole[at], name="conv2d_trimmed")


def whole_columns(cols: int) -> int:
    """So many columns, or a few more, that a good tile divides them."""
    if cols <= _SHORT_ROW or any(cols % tile == 0 for tile in _ROW_TILES):
        return cols
    return padded_rows(cols)


def _within(x: Any, cols: int) -> Any:
    """Where a column that is added for the tile's sake reads instead."""
    return x if whole_columns(cols) == cols else te.min(x, cols - 1)


def _trimmed(whole: Any, cols: int) -> Any:
    batch, out_blocks, rows, made, lanes = whole.shape
    if int(made) == cols:
        return whole
    return te.compute((batch, out_blocks, rows, cols, lanes), lambda *at: whole[at], name="conv2d_trimmed")


def depthwise_conv2d(data: Any, weight: Any, window: Window) -> Any:
    """Every channel by itself; weights are (blocks, kh, kw, block)."""
    batch, blocks, height, width, lanes = data.shape
    padded = pad(data, window, (2, 3))
    rows, cols = window.output_size(int(height), int(width))
    kh, kw = _window_axes(window)
    return te.compute(
        (batch, blocks, rows, cols, lanes),
        lambda n, o, y, x, c: te.sum(
            padded[n, o, *window.place(y, x, kh, kw), c] * weight[o, kh, kw, c], axis=[kh, kw]
        ),
        name="depthwise_conv2d",
    )


def max_pool2d(data: Any, window: Window) -> Any:
    """The largest value of each window; padding never wins."""
    batch, blocks, height, width, lanes = data.shape
    padded = pad(data, window, (2, 3), lowest=True)
    rows, cols = window.output_size(int(height), int(width))
    kh, kw = _window_axes(window)
    return te.compute(
        (batch, blocks, rows, cols, lanes),
        lambda n, o, y, x, c: te.max(padded[n, o, *window.place(y, x, kh, kw), c], axis=[kh, kw]),
        name="max_pool2d",
    )


def avg_pool2d(data: Any, window: Window, count_padding: bool) -> Any:
    """The mean of each window, over all of it or only what lies inside the image."""
    batch, blocks, height, width, lanes = data.shape
    padded = pad(data, window, (2, 3))
    rows, cols = window.output_size(int(height), int(width))
    kh, kw = _window_axes(window)
    shape = (batch, blocks, rows, cols, lanes)
    total = te.compute(
        shape,
        lambda n, o, y, x, c: te.sum(padded[n, o, *window.place(y, x, kh, kw), c], axis=[kh, kw]),
        name="avg_pool2d",
    )
    even = count_padding or not any(window.padding)

    def divided(n: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
        if even:
            return total[n, o, y, x, c] * tirx.const(1.0 / (window.kernel[0] * window.kernel[1]), data.dtype)
        inside = window.inside(y, 0, int(height)) * window.inside(x, 1, int(width))
        return total[n, o, y, x, c] / inside.astype(data.dtype)

    return te.compute(shape, divided, name="avg_pool2d_mean")


def global_pool2d(data: Any, kind: str) -> Any:
    """The sum, mean, largest or smallest value of the whole image, as an image of one point."""
    batch, blocks, height, width, lanes = data.shape
    ky, kx = te.reduce_axis((0, height), name="ky"), te.reduce_axis((0, width), name="kx")
    fold = fold_of(kind, str(data.dtype))
    total = te.compute(
        (batch, blocks, 1, 1, lanes),
        lambda n, o, y, x, c: fold(data[n, o, ky, kx, c], axis=[ky, kx]),
        name="global_pool2d",
    )
    if kind != "mean":
        return total
    share = tirx.const(1.0 / (int(height) * int(width)), data.dtype)
    return te.compute(
        total.shape, lambda n, o, y, x, c: total[n, o, y, x, c] * share, name="global_pool2d_mean"
    )


def to_blocked(data: Any, lanes: int) -> Any:
    """Plain (batch, channels, height, width) to blocked; missing channels are zero.

    Without a height, the result is an image of one row; with a depth, each plane is an image of the batch.
    """
    batch, channels, *sizes = data.shape
    blocks = block_count(int(channels), lanes)
    depth, height, width = [1] * (3 - len(sizes)) + list(sizes)

    def value(n: Any, o: Any, y: Any, x: Any, c: Any) -> Any:
        place = (n % depth, y, x)[3 - len(sizes) :]
        n = n // depth if len(sizes) == 3 else n
        if blocks * lanes == int(channels):
            return data[n, o * lanes + c, *place]
        zero = tirx.const(0, data.dtype)
        return tirx.if_then_else(o * lanes + c < channels, data[n, o * lanes + c, *place], zero)

    return te.compute((batch * depth, blocks, height, width, lanes), value, name="to_blocked")


def to_plain(data: Any, channels: int, line: bool = False, depth: int = 0) -> Any:
    """Blocked to plain; added channels are left out, and with `line` the height too.

    With a depth, so many images of the batch are the planes of a volume.
    """
    batch, _, height, width, lanes = data.shape
    if line:
        return te.compute(
            (batch, channels, width),
            lambda n, c, x: data[n, c // lanes, 0, x, c % lanes],
            name="to_plain",
        )
    if depth:
        return te.compute(
            (batch // depth, channels, depth, height, width),
            lambda n, c, z, y, x: data[n * depth + z, c // lanes, y, x, c % lanes],
            name="to_plain",
        )
    return te.compute(
        (batch, channels, height, width),
        lambda n, c, y, x: data[n, c // lanes, y, x, c % lanes],
        name="to_plain",
    )


def pad(data: Any, window: Window, axes: tuple[int, int], *, lowest: bool = False, value: Any = 0.0) -> Any:
    """A border of zeros, of another value, or of the lowest one, around the image."""
    if not any(window.padding):
        return data
    top, left, bottom, right = window.padding
    before, after = [0] * len(data.shape), [0] * len(data.shape)
    before[axes[0]], before[axes[1]], after[axes[0]], after[axes[1]] = top, left, bottom, right
    given = value.astype(data.dtype) if hasattr(value, "astype") else tirx.const(value, data.dtype)
    filled = te.min_value(data.dtype) if lowest else given
    return topi.nn.pad(data, before, after, pad_value=filled, name="padded")


def _window_axes(window: Window) -> tuple[Any, Any]:
    return te.reduce_axis((0, window.kernel[0]), name="kh"), te.reduce_axis((0, window.kernel[1]), name="kw")
