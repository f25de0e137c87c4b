"""Kernels that every implementer for GPUs is held against: small, of odd sizes, each hard in its own way."""

from collections.abc import Callable
from typing import Any

import numpy as np

from support.kernels.meanings import MeaningWriter
from tuneloom.backends.meaning import Meaning


def product_with_gelu(
    rows: int, columns: int, depth: int, dtype: str = "float16", **attributes: Any
) -> Meaning:
    """A product with bias and GELU."""
    w = MeaningWriter()
    x, weight, bias = (
        w.input((rows, depth), dtype),
        w.input((depth, columns), dtype),
        w.input((columns,), dtype),
    )
    y = w.step("matmul", (x, weight), (rows, columns), dtype, **attributes)
    y = w.step("add", (y, bias), (rows, columns), dtype)
    return w.meaning(w.step("nn.gelu", (y,), (rows, columns), dtype))


def plain_product(rows: int, columns: int, depth: int, dtype: str = "float16", **attributes: Any) -> Meaning:
    """A product and nothing else; whole numbers are added in 32 bits."""
    w = MeaningWriter()
    x, weight = w.input((rows, depth), dtype), w.input((depth, columns), dtype)
    result = "int32" if dtype == "int8" else "float16" if "float8" in dtype else dtype
    return w.meaning(w.step("matmul", (x, weight), (rows, columns), result, **attributes))


def product_in_eight_bits(rows: int, columns: int, depth: int) -> Meaning:
    """A product of 8-bit numbers, filters with their depth inside; its outputs are half and 8 bits wide."""
    w, eight = MeaningWriter(), "float8_e4m3fn"
    x, weight = w.input((1, rows, depth), eight), w.input((columns, 1, depth), eight)
    steps, shape = w.input((columns,), "float32"), (1, rows, columns)
    layouts = {"data_layout": "NWC", "kernel_layout": "OWI", "out_layout": "NWC", "groups": 1}
    attributes = {"strides": [1], "padding": [0, 0], "dilation": [1], **layouts}
    y = w.step("nn.conv1d", (x, weight), shape, "float32", **attributes)
    y = w.step("astype", (w.step("multiply", (y, steps), shape, "float32"),), shape, "float16")
    z = w.step("clip", (w.step("astype", (y,), shape, "float32"),), shape, "float32", min=-448.0, max=448.0)
    return w.meaning(y, w.step("astype", (z,), shape, eight))


def split_heads(length: int, width: int, heads: int, dtype: str = "float16") -> Meaning:
    """The projection before attention: a product with bias, taken apart into heads."""
    w = MeaningWriter()
    x, weight, bias = (
        w.input((1, length, width), dtype),
        w.input((width, width), dtype),
        w.input((width,), dtype),
    )
    y = w.step("matmul", (x, weight), (1, length, width), dtype)
    y = w.step("add", (y, bias), (1, length, width), dtype)
    y = w.step("reshape", (y,), (1, length, heads, width // heads), dtype)
    return w.meaning(
        w.step("permute_dims", (y,), (1, heads, length, width // heads), dtype, axes=[0, 2, 1, 3])
    )


def joined_heads(length: int, width: int, heads: int, dtype: str = "float16") -> Meaning:
    """The projection behind attention: heads joined, a product with bias and residual, two outputs."""
    w = MeaningWriter()
    x, weight = w.input((1, heads, length, width // heads), dtype), w.input((width, width), dtype)
    bias, residual = w.input((width,), dtype), w.input((1, length, width), dtype)
    y = w.step("permute_dims", (x,), (1, length, heads, width // heads), dtype, axes=[0, 2, 1, 3])
    y = w.step("reshape", (y,), (1, length, width), dtype)
    y = w.step("matmul", (y, weight), (1, length, width), dtype)
    y = w.step("add", (y, bias), (1, length, width), dtype)
    y = w.step("add", (y, residual), (1, length, width), dtype)
    return w.meaning(y, w.step("nn.silu", (y,), (1, length, width), dtype))


def batched_product(dtype: str = "float16") -> Meaning:
    """Products of a batch with the second factor transposed and broadcast, scaled."""
    w = MeaningWriter()
    x, y = w.input((2, 3, 20, 24), dtype), w.input((3, 36, 24), dtype)
    turned = w.step("permute_dims", (y,), (3, 24, 36), dtype, axes=[0, 2, 1])
    z = w.step("matmul", (x, turned), (2, 3, 20, 36), dtype)
    scale = w.const(0.25, dtype)
    z = w.step("multiply", (z, scale), (2, 3, 20, 36), dtype)
    return w.meaning(w.step("clip", (z,), (2, 3, 20, 36), dtype, min=-1.5, max=2.5))


def gated_product(dtype: str = "float16") -> Meaning:
    """A product whose first factor is computed, times another input, cast behind."""
    w = MeaningWriter()
    x, weight, gate = w.input((33, 40), "float32"), w.input((40, 48), dtype), w.input((33, 48), dtype)
    x = w.step("tanh", (x,), (33, 40), "float32")
    x = w.step("astype", (x,), (33, 40), dtype)
    y = w.step("matmul", (x, weight), (33, 48), dtype)
    y = w.step("multiply", (w.step("sigmoid", (y,), (33, 48), dtype), gate), (33, 48), dtype)
    return w.meaning(w.step("astype", (y,), (33, 48), "float32"))


def attention(
    queries: int,
    keys: int,
    heads: int,
    width: int,
    dtype: str = "float16",
    *,
    key_heads: int = 0,
    bias: bool = False,
    causal: str | None = None,
) -> Meaning:
    """Attention as Relax's operator."""
    w = MeaningWriter()
    q = w.input((1, queries, heads, width), dtype)
    k, v = (w.input((1, keys, key_heads or heads, width), dtype) for _ in "kv")
    operands = [q, k, v, *([w.input((1, 1, queries, keys), dtype)] if bias else [])]
    name = "nn.attention_bias" if bias else "nn.attention"
    attributes = {"scale": None, "causal_mask": causal, "window_size": None}
    return w.meaning(w.step(name, operands, (1, queries, heads, width), dtype, **attributes))


def written_out_attention(
    length: int, heads: int, width: int, dtype: str = "float16", *, mask: bool = False
) -> Meaning:
    """Attention of operators, from one tensor with queries, keys and values, heads joined behind."""
    w = MeaningWriter()
    whole, shape = heads * width, (1, heads, length, width)
    qkv = w.input((1, length, 3 * whole), dtype)
    hidden = w.input((1, 1, 1, length), "bool") if mask else -1
    parts = []
    for part in range(3):
        begin = part * whole
        x = w.step(
            "strided_slice", (qkv,), (1, length, whole), dtype, axes=[2], begin=[begin], end=[begin + whole]
        )
        x = w.step("reshape", (x,), (1, length, heads, width), dtype)
        parts.append(w.step("permute_dims", (x,), shape, dtype, axes=[0, 2, 1, 3]))
    q, k, v = parts
    k = w.step("permute_dims", (k,), (1, heads, width, length), dtype, axes=[0, 1, 3, 2])
    scores = (1, heads, length, length)
    s = w.step("matmul", (q, k), scores, dtype)
    s = w.step("multiply", (s, w.const(width**-0.5, dtype)), scores, dtype)
    if mask:
        s = w.step("where", (hidden, s, w.const(-10000.0, dtype)), scores, dtype)
    p = w.step("nn.softmax", (s,), scores, dtype, axis=-1)
    y = w.step("matmul", (p, v), shape, dtype)
    y = w.step("permute_dims", (y,), (1, length, heads, width), dtype, axes=[0, 2, 1, 3])
    return w.meaning(w.step("reshape", (y,), (1, length, whole), dtype))


def attention_with_a_cache(dtype: str = "float16") -> Meaning:
    """Attention of one row over the keys and values of a cache and its own, which are slices of a product."""
    w = MeaningWriter()
    product, cache = w.input((1, 96), dtype), w.input((2, 1, 2, 20, 16), dtype)
    parts = []
    for number in range(3):
        bounds = {"axes": [1], "begin": [32 * number], "end": [32 * number + 32]}
        part = w.step("strided_slice", (product,), (1, 32), dtype, **bounds)
        own = w.step("reshape", (part,), (1, 2, 1, 16), dtype)
        if number:
            bounds = {"axes": [0], "begin": [number - 1], "end": [number]}
            before = w.step("strided_slice", (cache,), (1, 1, 2, 20, 16), dtype, **bounds)
            before = w.step("reshape", (before,), (1, 2, 20, 16), dtype)
            own = w.step("concat", (before, own), (1, 2, 21, 16), dtype, axis=2)
        rows = 21 if number else 1
        parts.append(w.step("permute_dims", (own,), (1, rows, 2, 16), dtype, axes=[0, 2, 1, 3]))
    attributes = {"scale": None, "causal_mask": None, "window_size": None}
    return w.meaning(w.step("nn.attention", tuple(parts), (1, 1, 2, 16), dtype, **attributes))


def attention_in_place(length: int, heads: int, width: int, dtype: str = "float16") -> Meaning:
    """Attention whose operands are slices of one product with five axes, with a bias for each head."""
    w = MeaningWriter()
    qkv, bias = w.input((2 * length, 3 * heads * width), dtype), w.input((1, heads, 1, length), dtype)
    split = w.step("reshape", (qkv,), (2, length, 3, heads, width), dtype)
    parts = []
    for part in range(3):
        bounds = {"axes": [2], "begin": [part], "end": [part + 1]}
        x = w.step("strided_slice", (split,), (2, length, 1, heads, width), dtype, **bounds)
        parts.append(w.step("reshape", (x,), (2, length, heads, width), dtype))
    attributes = {"scale": 0.3, "causal_mask": None, "window_size": None}
    return w.meaning(
        w.step("nn.attention_bias", (*parts, bias), (2, length, heads, width), dtype, **attributes)
    )


def attention_with_repeated_keys(dtype: str = "float16") -> Meaning:
    """Attention in which three heads each share keys and values, which a program repeats for them."""
    w = MeaningWriter()
    q, *shared = (
        w.input((1, 20, 6, 16), dtype),
        w.input((1, 2, 24, 16), dtype),
        w.input((1, 2, 24, 16), dtype),
    )
    parts = []
    for x in shared:
        x = w.step("expand_dims", (x,), (1, 2, 1, 24, 16), dtype, axis=[2])
        x = w.step("broadcast_to", (x,), (1, 2, 3, 24, 16), dtype)
        x = w.step("reshape", (x,), (1, 6, 24, 16), dtype)
        parts.append(w.step("permute_dims", (x,), (1, 24, 6, 16), dtype, axes=[0, 2, 1, 3]))
    attributes = {"scale": None, "causal_mask": "BottomRight", "window_size": None}
    return w.meaning(w.step("nn.attention", (q, *parts), (1, 20, 6, 16), dtype, **attributes))


def attention_of_hidden_rows(dtype: str = "float32", low: float = -np.inf) -> Meaning:
    """Attention with a mask that hides some rows from all keys, by a number as low as this."""
    w = MeaningWriter()
    q, k, v = (w.input((1, 18, 2, 16), dtype) for _ in "qkv")
    mask = w.input((1, 1, 18, 1), "bool")
    hidden = w.step("where", (mask, w.const(0.0, dtype), w.const(low, dtype)), (1, 1, 18, 1), dtype)
    bias = w.step("broadcast_to", (hidden,), (1, 1, 18, 18), dtype)
    attributes = {"scale": None, "causal_mask": None, "window_size": None}
    return w.meaning(w.step("nn.attention_bias", (q, k, v, bias), (1, 18, 2, 16), dtype, **attributes))


def joined_parts(dtype: str = "float16") -> Meaning:
    """Tensors joined along an axis, one of them transposed, and doubled."""
    w = MeaningWriter()
    x, y, z = w.input((3, 5, 8), dtype), w.input((8, 3, 2), dtype), w.input((3, 4, 8), dtype)
    turned = w.step("permute_dims", (y,), (3, 2, 8), dtype, axes=[1, 2, 0])
    joined = w.step("concat", (x, turned, z), (3, 11, 8), dtype, axis=1)
    return w.meaning(w.step("add", (joined, joined), (3, 11, 8), dtype))


def grown_cache(dtype: str = "float16") -> Meaning:
    """Keys of a cache and, behind them, those of one more row, which are a slice of a product."""
    w = MeaningWriter()
    cache, product = w.input((1, 3, 9, 8), dtype), w.input((1, 1, 72), dtype)
    part = w.step("strided_slice", (product,), (1, 1, 24), dtype, axes=[2], begin=[24], end=[48])
    heads = w.step("reshape", (part,), (1, 3, 1, 8), dtype)
    return w.meaning(w.step("concat", (cache, heads), (1, 3, 10, 8), dtype, axis=2))


def patches_behind_a_class(dtype: str = "float16") -> Meaning:
    """Pixels as rows behind one more row, with a table added: no loop variable counts the pixels."""
    w = MeaningWriter()
    pixels, extra, table = w.input((1, 3, 5, 8), dtype), w.input((1, 1, 8), dtype), w.input((1, 16, 8), dtype)
    rows = w.step("reshape", (pixels,), (1, 15, 8), dtype)
    joined = w.step("concat", (extra, rows), (1, 16, 8), dtype, axis=1)
    return w.meaning(w.step("add", (joined, table), (1, 16, 8), dtype))


def _rolled(w: MeaningWriter, value: int, channels: int, dtype: str) -> int:
    """An image of 6 by 6 pixels moved round by one along both of its axes."""
    for axis in (1, 2):
        parts = []
        for begin, end in ((1, 6), (0, 1)):
            shape = [1, 6, 6, channels]
            shape[axis] = end - begin
            parts.append(
                w.step("strided_slice", (value,), shape, dtype, axes=[axis], begin=[begin], end=[end])
            )
        value = w.step("concat", tuple(parts), (1, 6, 6, channels), dtype, axis=axis)
    return value


def norm_of_windows(dtype: str = "float16") -> Meaning:
    """A layer norm of the pixels of a rolled image, window by window."""
    w = MeaningWriter()
    flat = w.input((36, 20), dtype)
    weights = [w.input((20,), dtype), w.input((20,), dtype)]
    image = w.step("reshape", (flat,), (1, 6, 6, 20), dtype)
    apart = w.step("reshape", (_rolled(w, image, 20, dtype),), (1, 2, 3, 2, 3, 20), dtype)
    turned = w.step("permute_dims", (apart,), (1, 2, 2, 3, 3, 20), dtype, axes=[0, 1, 3, 2, 4, 5])
    rows = w.step("reshape", (turned,), (36, 20), dtype)
    return w.meaning(w.step("nn.layer_norm", (rows, *weights), (36, 20), dtype, axes=[-1], epsilon=1e-5))


def product_of_windows(dtype: str = "float16") -> Meaning:
    """The pixels of windows put back into an image, moved round, multiplied, and a residual added."""
    w = MeaningWriter()
    windows, weight = w.input((4, 9, 2, 16), dtype), w.input((32, 24), dtype)
    bias, residual = w.input((24,), dtype), w.input((36, 24), dtype)
    joined = w.step("reshape", (windows,), (1, 2, 2, 3, 3, 32), dtype)
    turned = w.step("permute_dims", (joined,), (1, 2, 3, 2, 3, 32), dtype, axes=[0, 1, 3, 2, 4, 5])
    image = w.step("reshape", (turned,), (1, 6, 6, 32), dtype)
    rows = w.step("reshape", (_rolled(w, image, 32, dtype),), (36, 32), dtype)
    y = w.step("matmul", (rows, weight), (36, 24), dtype)
    y = w.step("add", (y, bias), (36, 24), dtype)
    return w.meaning(w.step("add", (y, residual), (36, 24), dtype))


def norm_of_merged_pixels(dtype: str = "float16") -> Meaning:
    """A layer norm of four neighbouring pixels joined, for every second pixel."""
    w = MeaningWriter()
    flat = w.input((36, 12), dtype)
    weights = [w.input((48,), dtype), w.input((48,), dtype)]
    image = w.step("reshape", (flat,), (1, 6, 6, 12), dtype)
    parts = []
    for down, right in ((0, 0), (1, 0), (0, 1), (1, 1)):
        bounds = {"axes": [1, 2], "begin": [down, right], "end": [6, 6], "strides": [2, 2]}
        parts.append(w.step("strided_slice", (image,), (1, 3, 3, 12), dtype, **bounds))
    joined = w.step("concat", tuple(parts), (1, 3, 3, 48), dtype, axis=3)
    return w.meaning(
        w.step("nn.layer_norm", (joined, *weights), (1, 3, 3, 48), dtype, axes=[-1], epsilon=1e-5)
    )


def rows_of_tables(dtype: str = "float16") -> Meaning:
    """Rows of two tables added, and a layer norm."""
    w = MeaningWriter()
    numbers, words, places = (
        w.input((2, 9), "int64"),
        w.input((30, 24), dtype),
        w.input((9, 24), dtype),
    )
    g, b = w.input((24,), dtype), w.input((24,), dtype)
    x = w.step("take", (words, numbers), (2, 9, 24), dtype, axis=0)
    x = w.step("add", (x, places), (2, 9, 24), dtype)
    attributes = {"axes": [-1], "epsilon": 1e-5, "center": True, "scale": True}
    return w.meaning(w.step("nn.layer_norm", (x, g, b), (2, 9, 24), dtype, **attributes))


def layer_norm(rows: int, width: int, dtype: str = "float16") -> Meaning:
    """A residual added, then a layer norm; both are outputs."""
    w = MeaningWriter()
    x, r, g, b = (
        w.input((1, rows, width), dtype),
        w.input((1, rows, width), dtype),
        w.input((width,), dtype),
        w.input((width,), dtype),
    )
    y = w.step("add", (x, r), (1, rows, width), dtype)
    attributes = {"axes": [-1], "epsilon": 1e-5, "center": True, "scale": True}
    return w.meaning(y, w.step("nn.layer_norm", (y, g, b), (1, rows, width), dtype, **attributes))


def rms_norm(rows: int, width: int, dtype: str = "float16") -> Meaning:
    """An RMS norm."""
    w = MeaningWriter()
    x, g = w.input((rows, width), dtype), w.input((width,), dtype)
    return w.meaning(w.step("nn.rms_norm", (x, g), (rows, width), dtype, axes=[-1], epsilon=1e-6))


def softmax(rows: int, width: int, dtype: str = "float16", axis: int = -1) -> Meaning:
    """A scaled softmax."""
    w = MeaningWriter()
    x = w.input((rows, width), dtype)
    y = w.step("multiply", (x, w.const(0.5, dtype)), (rows, width), dtype)
    return w.meaning(w.step("nn.softmax", (y,), (rows, width), dtype, axis=axis))


def pooled_mean(dtype: str = "float16") -> Meaning:
    """The mean of an image in NHWC with ReLU before and a square behind."""
    w = MeaningWriter()
    x = w.input((2, 7, 7, 40), dtype)
    y = w.step("nn.relu", (x,), (2, 7, 7, 40), dtype)
    y = w.step("mean", (y,), (2, 40), dtype, axis=[1, 2], keepdims=False)
    return w.meaning(w.step("square", (y,), (2, 40), dtype))


def written_out_norm(dtype: str = "float32") -> Meaning:
    """A layer norm of operators."""
    w = MeaningWriter()
    shape, one = (3, 5, 50), (3, 5, 1)
    x = w.input(shape, dtype)
    mean = w.step("mean", (x,), one, dtype, axis=[2], keepdims=True)
    y = w.step("subtract", (x, mean), shape, dtype)
    square = w.step("power", (y, w.const(2.0, dtype)), shape, dtype)
    spread = w.step("mean", (square,), one, dtype, axis=[-1], keepdims=True)
    spread = w.step("add", (spread, w.const(1e-5, dtype)), one, dtype)
    return w.meaning(w.step("divide", (y, w.step("sqrt", (spread,), one, dtype)), shape, dtype))


def elementwise(dtype: str = "float16") -> Meaning:
    """A chain with a transposed and a broadcast operand and two outputs."""
    w = MeaningWriter()
    x, y, z = w.input((5, 6, 35), dtype), w.input((35, 5, 6), dtype), w.input((6, 1), dtype)
    turned = w.step("permute_dims", (y,), (5, 6, 35), dtype, axes=[1, 2, 0])
    a = w.step("add", (x, turned), (5, 6, 35), dtype)
    b = w.step("maximum", (a, z), (5, 6, 35), dtype)
    smaller = w.step("less", (a, z), (5, 6, 35), "bool")
    c = w.step("where", (smaller, b, x), (5, 6, 35), dtype)
    return w.meaning(w.step("nn.gelu_tanh", (c,), (5, 6, 35), dtype), smaller)


def convolution(
    image: tuple[int, int, int, int],
    filters: int,
    size: int,
    dtype: str = "float16",
    *,
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    layout: str = "NHWC",
    residual: bool = False,
) -> Meaning:
    """A convolution with bias and ReLU, padded by half its window; `image` is in NHWC."""
    number, height, width, channels = image
    pad = dilation * (size // 2)
    out = [(extent + 2 * pad - dilation * (size - 1) - 1) // stride + 1 for extent in (height, width)]
    filters_last = "HWOI" if groups == channels > 1 else "OHWI"  # as models have them
    kernel_layout = filters_last if layout == "NHWC" else "OIHW"
    letters = dict(zip("NHWC", image, strict=True))
    sizes = dict(zip("OHWI", (filters, size, size, channels // groups), strict=True))
    outs = dict(zip("NHWC", (number, *out, filters), strict=True))
    shape = [outs[letter] for letter in layout]
    ones = [filters if letter == "C" else 1 for letter in layout]
    w = MeaningWriter()
    x = w.input([letters[letter] for letter in layout], dtype)
    weight, bias = w.input([sizes[letter] for letter in kernel_layout], dtype), w.input(ones, dtype)
    other = w.input(shape, dtype) if residual else -1
    y = w.step(
        "nn.conv2d", (x, weight), shape, dtype, strides=[stride, stride], padding=[pad] * 4,
        dilation=[dilation, dilation], groups=groups, data_layout=layout, kernel_layout=kernel_layout,
        out_layout=layout,
    )  # fmt: skip
    y = w.step("add", (y, bias), shape, dtype)
    if residual:
        y = w.step("add", (y, other), shape, dtype)
    return w.meaning(w.step("nn.relu", (y,), shape, dtype))


def transposed(
    image: tuple[int, int, int, int],
    filters: int,
    size: int,
    stride: int,
    pad: int,
    layout: str = "NHWC",
    dtype: str = "float16",
) -> Meaning:
    """A transposed convolution with bias; `image` is in NHWC."""  # fmt: skip
    number, height, width, channels = image
    out = [(extent - 1) * stride + size - 2 * pad for extent in (height, width)]
    kernel_layout = "OHWI" if layout == "NHWC" else "IOHW"
    letters = dict(zip("NHWC", image, strict=True))
    sizes = dict(zip("OHWI", (filters, size, size, channels), strict=True))
    outs = dict(zip("NHWC", (number, *out, filters), strict=True))
    shape = [outs[letter] for letter in layout]
    w = MeaningWriter()
    x = w.input([letters[letter] for letter in layout], dtype)
    weight = w.input([sizes[letter] for letter in kernel_layout], dtype)
    bias = w.input([filters if letter == "C" else 1 for letter in layout], dtype)
    y = w.step(
        "nn.conv2d_transpose", (x, weight), shape, dtype, strides=[stride, stride], padding=[pad] * 4,
        output_padding=[0, 0], dilation=[1, 1], groups=1, data_layout=layout, kernel_layout=kernel_layout,
        out_layout=layout,
    )  # fmt: skip
    return w.meaning(w.step("add", (y, bias), shape, dtype))


def line_convolution(
    length: int, channels: int, filters: int, size: int, stride: int, groups: int = 1
) -> Meaning:
    """A convolution along one dimension with GELU, in NCW."""
    w, out = MeaningWriter(), (length - size) // stride + 1
    x, weight = w.input((2, channels, length)), w.input((filters, channels // groups, size))
    y = w.step(
        "nn.conv1d", (x, weight), (2, filters, out), strides=[stride], padding=[0, 0], dilation=[1],
        groups=groups, data_layout="NCW", kernel_layout="OIW", out_layout="NCW",
    )  # fmt: skip
    return w.meaning(w.step("nn.gelu", (y,), (2, filters, out)))


def reduced(how: str, shape: tuple[int, ...], axes: list[int], dtype: str = "float16") -> Meaning:
    """A reduction over some axes, scaled behind."""
    w = MeaningWriter()
    result = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    y = w.step(how, (w.input(shape, dtype),), result, dtype, axis=axes, keepdims=True)
    return w.meaning(w.step("multiply", (y, w.const(0.5, dtype)), result, dtype))


def recurrent(kind: str, steps: int, batch: int, hidden: int, width: int, *backwards: bool) -> Meaning:
    """A recurrent layer, forwards unless said otherwise for each direction.

    Of random lengths, those below one are sequences without any step.
    """
    w, gates, state = MeaningWriter(), 4 if kind == "lstm" else 3, (batch, hidden)
    shapes = [(steps, batch, gates * hidden), (gates * hidden // width, hidden, width), state]
    shapes += [state] if kind == "lstm" else []
    more, ways = (3 * hidden,) if kind == "lstm" else (hidden,), backwards or (False,)
    inputs = [
        [
            *(w.input(shape, "float32") for shape in shapes),
            w.input((batch,), "int32"),
            w.input(more, "float32"),
        ]
        for _ in ways
    ]
    results = [(steps, *state), state, state][: gates - 1]
    return w.meaning(
        *(
            w.step(f"tuneloom.{kind}", given, shape, "float32", width=width, backwards=back, result=n)
            for given, back in zip(inputs, ways, strict=True)
            for n, shape in enumerate(results)
        )
    )


def pool(how: str, layout: str = "NHWC", dtype: str = "float16") -> Meaning:
    """A pool of 3 x 3 with padding, every second pixel."""
    w = MeaningWriter()
    before, behind = {"N": 2, "H": 9, "W": 8, "C": 20}, {"N": 2, "H": 5, "W": 4, "C": 20}
    x = w.input([before[letter] for letter in layout], dtype)
    attributes = {
        "pool_size": [3, 3],
        "strides": [2, 2],
        "padding": [1, 1, 1, 1],
        "dilation": [1, 1],
        "layout": layout,
    }
    more = {} if how == "max" else {"count_include_pad": False}
    return w.meaning(
        w.step(f"nn.{how}_pool2d", (x,), [behind[letter] for letter in layout], dtype, **attributes, **more)
    )


CASES: dict[str, tuple[str, Callable[[], Meaning]]] = {
    "product with GELU": ("product", lambda: product_with_gelu(50, 72, 100)),
    "product in bfloat16": ("product", lambda: product_with_gelu(33, 40, 64, "bfloat16")),
    "product in float32": ("product", lambda: product_with_gelu(20, 24, 70, "float32")),
    "product in TF32": ("product", lambda: product_with_gelu(32, 32, 64, "float32", precision="tf32")),
    "product of odd sizes": ("product", lambda: plain_product(17, 19, 23)),
    "product of whole numbers": ("product", lambda: plain_product(32, 48, 64, "int8")),
    "product in 8 bits": ("convolution", lambda: product_in_eight_bits(40, 48, 200)),
    "product of one row": ("vector", lambda: product_with_gelu(1, 72, 300)),
    "product of one row in float32": ("vector", lambda: plain_product(1, 40, 100, "float32")),
    "split heads": ("product", lambda: split_heads(24, 64, 4)),
    "joined heads": ("product", lambda: joined_heads(24, 64, 4)),
    "batched product": ("product", batched_product),
    "gated product": ("product", gated_product),
    "product of windows": ("product", product_of_windows),
    "attention": ("attention", lambda: attention(40, 72, 2, 32)),
    "causal attention": ("attention", lambda: attention(48, 48, 2, 16, causal="TopLeft")),
    "causal attention with a cache": ("attention", lambda: attention(20, 53, 1, 24, causal="BottomRight")),
    "attention with shared keys": ("attention", lambda: attention(33, 35, 4, 16, "bfloat16", key_heads=2)),
    "attention with bias in float32": ("attention", lambda: attention(17, 33, 2, 20, "float32", bias=True)),
    "attention of one row": ("attention", lambda: attention(1, 100, 2, 32)),
    "attention of one row over many keys": ("attention", lambda: attention(1, 300, 2, 24)),
    "attention in place": ("attention", lambda: attention_in_place(21, 2, 16)),
    "attention with a cache in place": ("attention", attention_with_a_cache),
    "attention with repeated keys": ("attention", attention_with_repeated_keys),
    "attention of hidden rows": ("attention", attention_of_hidden_rows),
    "attention of hidden rows, finite": (
        "attention",
        lambda: attention_of_hidden_rows(low=float(np.finfo("float32").min)),
    ),
    "written out attention": ("attention", lambda: written_out_attention(40, 2, 16)),
    "masked attention": ("attention", lambda: written_out_attention(36, 2, 16, mask=True)),
    "layer norm": ("rows", lambda: layer_norm(10, 96)),
    "norm of windows": ("rows", norm_of_windows),
    "norm of merged pixels": ("rows", norm_of_merged_pixels),
    "RMS norm": ("rows", lambda: rms_norm(5, 100, "bfloat16")),
    "softmax": ("rows", lambda: softmax(7, 65, "float32")),
    "softmax along columns": ("rows", lambda: softmax(33, 20, axis=0)),
    "pooled mean": ("sum", pooled_mean),
    "mean of all pixels": ("sum", lambda: reduced("mean", (1, 20, 30, 12), [1, 2])),
    "largest of many": ("sum", lambda: reduced("max", (3, 5000), [1], "float32")),
    "written out norm": ("rows", written_out_norm),
    "rows of tables": ("rows", rows_of_tables),
    "elementwise chain": ("elements", elementwise),
    "joined parts": ("elements", joined_parts),
    "grown cache": ("elements", grown_cache),
    "patches behind a class": ("elements", patches_behind_a_class),
    "convolution": ("convolution", lambda: convolution((1, 5, 7, 32), 24, 3, residual=True)),
    "convolution every second pixel": ("convolution", lambda: convolution((2, 7, 6, 16), 24, 3, stride=2)),
    "convolution of few channels": ("convolution", lambda: convolution((1, 12, 11, 3), 16, 5, stride=2)),
    "dilated convolution": ("convolution", lambda: convolution((1, 6, 7, 16), 16, 3, dilation=2)),
    "convolution in NCHW": ("convolution", lambda: convolution((2, 4, 5, 24), 20, 3, layout="NCHW")),
    "convolution in groups": ("convolution", lambda: convolution((1, 5, 5, 32), 40, 3, groups=2)),
    "convolution of single pixels": ("convolution", lambda: convolution((1, 6, 6, 40), 24, 1, "float32")),
    "convolution along a line": ("convolution", lambda: line_convolution(50, 24, 20, 3, 2)),
    "line convolution in groups": ("convolution", lambda: line_convolution(30, 32, 32, 10, 1, groups=2)),
    "transposed convolution": ("transposed", lambda: transposed((1, 5, 6, 24), 20, 2, 2, 0)),
    "transposed with overlap": ("transposed", lambda: transposed((2, 3, 2, 16), 24, 4, 2, 1, "NCHW")),
    "LSTM": ("recurrent", lambda: recurrent("lstm", 5, 3, 6, 2)),
    "GRU backwards": ("recurrent", lambda: recurrent("gru", 4, 6, 8, 4, True)),
    "LSTM both ways": ("recurrent", lambda: recurrent("lstm", 4, 2, 6, 2, False, True)),
    "depthwise convolution": ("window", lambda: convolution((2, 5, 6, 40), 40, 3, stride=2, groups=40)),
    "wide depthwise": (
        "window",
        lambda: convolution((2, 3, 8, 40), 40, 5, "float32", groups=40, residual=True),
    ),
    "depthwise in NCHW": ("window", lambda: convolution((1, 7, 8, 10), 10, 3, groups=10, layout="NCHW")),
    "largest of a window": ("window", lambda: pool("max")),
    "mean of a window": ("window", lambda: pool("avg", "NCHW")),
}
"""Kernels by name, with the template that should take each."""

TOLERANCES = {
    "float16": 4e-3,
    "bfloat16": 2e-2,
    "float32": 2e-5,
    "int32": 0.0,
    "bool": 0.02,
    "float8_e4m3fn": 7e-2,  # Triton's interpreter cuts bits off where it should round
}
"""How far outputs may be off, relative to their size, by type."""

TF32_TOLERANCE = 2e-3
