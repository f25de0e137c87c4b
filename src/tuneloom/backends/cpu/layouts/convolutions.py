"""Convolutions and products as kernels for blocked tensors: which kind a layer becomes."""

from dataclasses import replace
from typing import Any

from tuneloom.backends.cpu.instructions.tiles import KNOWN, SIDE
from tuneloom.backends.cpu.layouts.forms import Forms
from tuneloom.backends.cpu.layouts.kernels import compute, dots, pairs, winograd, winograd_lines
from tuneloom.backends.cpu.layouts.shapes import values
from tuneloom.backends.cpu.layouts.shapes.groups import Groups
from tuneloom.backends.cpu.layouts.shapes.uneven_groups import by_channels
from tuneloom.backends.cpu.layouts.shapes.values import OpenConcat, OpenConv, Quantised, Restored, Value
from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom.backends.quantising import Scale
from tuneloom.compiler.lazy import relax

IN_GROUPS = "conv2d_in_groups"
"""The name of kernels whose sums have terms that are zero under a condition."""


class Convolutions(Forms):
    """What the CPU has decides: its lanes, products of pairs, products in tiles."""

    def __init__(
        self,
        builder: Any,
        lanes: int,
        *,
        block: int = 0,
        pairs: bool = False,
        tiles: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(builder, block or lanes)
        self.lanes = lanes
        self.pairs = pairs
        self._tiles = tiles
        self._costs = winograd.TransformCosts.of(lanes, has_tiles=bool(tiles))
        self._halves: dict[Any, Any] = {}

    def side(self, kind: str, inner: int) -> int:
        """How many rows of a product, with sums so long, are computed at once in tiles; 1 without tiles."""
        return SIDE if kind in self._tiles and inner % KNOWN[kind].inner == 0 else 1

    def halves(self, data: Any) -> Any:
        """Data rounded to bfloat16, once for all that read them."""
        if data not in self._halves:
            self._halves[data] = self.kernel(pairs.halves, [data], "halves")
        return self._halves[data]

    def _close_conv(self, conv: OpenConv) -> Any:
        data = conv.data
        if isinstance(data, Restored) and not self._is_first(conv) and conv.groups == 1:
            return self._dots(conv, data.whole)
        apart = isinstance(data, OpenConcat) and data.sole and data.blocked is None and conv.groups == 1
        if apart and 2 * conv.weight.shape[0] <= conv.weight.shape[1]:
            result = self._sum_of_convolutions(conv, data)
        else:
            result = self._convolution(conv)
        if conv.bias is not None:
            bias = self.channel_constant(conv.bias, 0.0)
            result = self._builder.emit(relax.op.add(result, bias))
        return result

    def _sum_of_convolutions(self, conv: OpenConv, data: Any) -> Any:
        """Every part meets its own share of the weights; the parts are never put together."""
        total, start = None, 0
        for part in data.parts:
            weight = conv.weight[:, start : start + part.shape[1]]
            start += part.shape[1]
            share = self._convolution(replace(conv, data=part, weight=weight, bias=None))
            total = share if total is None else self._builder.emit(relax.op.add(share, total))
        return total

    def _convolution(self, conv: OpenConv) -> Any:
        first = self._is_first(conv)
        if conv.depthwise:
            weight = relax.const(values.pack_depthwise_weight(conv.weight, self.block))
            arguments = [self.blocked(conv.data), weight]
            return self.kernel(compute.depthwise_conv2d, arguments, "depthwise_conv2d", window=conv.window)
        if first and conv.groups == 1:
            weight = relax.const(values.pack_first_weight(conv.weight, self.block))
            arguments = [self.plain(conv.data), weight]
            return self.kernel(compute.conv2d_from_plain, arguments, "conv2d", window=conv.window)
        if conv.skips_points:
            return self._of_some_points(conv)
        if winograd.pays(conv, self._costs, pairs.TWO if self.pairs else 1):
            return self._winograd(conv)
        line = winograd_lines.line_of(conv, self._costs)
        if line is not None:
            return self._winograd_along(conv, line)
        if conv.groups > 1:
            return self._grouped(conv)
        if self.pairs:
            weight = relax.const(pairs.pack_pairs(conv.weight, self.block))
            arguments = [self.halves(self.blocked(conv.data)), weight]
            return self.kernel(pairs.conv2d_pairs, arguments, "conv2d_pairs", window=conv.window)
        weight = relax.const(values.pack_weight(conv.weight, self.block))
        arguments = [self.blocked(conv.data), weight]
        return self.kernel(compute.conv2d, arguments, "conv2d", window=conv.window)

    def _of_some_points(self, conv: OpenConv) -> Any:
        """A product of points that are taken out of the image first, so that they lie side by side."""
        rows, cols = (1, *conv.data.shape[2:])[-2:]
        whole, strides = self.blocked(conv.data), list(conv.window.stride)
        taken = self.emit(relax.op.strided_slice(whole, [2, 3], [0, 0], [rows, cols], strides))
        data = Value(shape=(*conv.data.shape[:2], *conv.shape[2:]), blocked=taken)
        return self._convolution(replace(conv, data=data, window=Window(kernel=(1, 1))))

    def _is_first(self, conv: OpenConv) -> bool:
        """Whether a convolution reads an image with few channels, as the first layer of a network does."""
        return not self.is_blocked(conv.data) and conv.data.shape[1] < self.block

    def _dots(self, conv: OpenConv, data: Quantised) -> Any:
        """A convolution of 8-bit whole numbers, its scales and bias included."""
        whole, step = dots.quantise_weight(conv.weight)
        last = [
            self.channel_constant(one, 0.0)
            for one in dots.factor_and_shift(whole, step, conv.bias, data.scale)
        ]
        return self.conv2d_of_wholes(self.blocked(data), whole, last, conv.window, data.scale)

    def conv2d_of_wholes(self, data: Any, weight: Any, last: list[Any], window: Window, scale: Scale) -> Any:
        """A convolution of blocked whole numbers; `last` are the factor and the shift of its sums."""
        arguments = [data, relax.const(dots.pack_dots(weight, self.block)), *last]
        return self.kernel(dots.conv2d_dots, arguments, "conv2d_dots", window=window, zero=scale.zero)

    def product_of_wholes(self, data: Any, weight: Any, last: list[Any], panel: int, scale: Scale) -> Any:
        """A product of whole numbers with weights (out, in)."""
        arguments = [data, relax.const(dots.pack_dot_panels(weight, panel)), *last]
        options = {"width": weight.shape[0], "side": self.side("int8", weight.shape[1])}
        return self.kernel(dots.product_dots, arguments, "product_dots", **options)

    def _grouped(self, conv: OpenConv) -> Any:
        outside, inside = conv.weight.shape[0] // conv.groups, conv.weight.shape[1]
        groups = Groups(count=conv.groups, inside=inside, outside=outside, lanes=self.block)
        uneven = by_channels(groups, conv.shape[2:])
        if uneven is not None:
            arguments = [self.blocked(conv.data), relax.const(uneven.pack(conv.weight))]
            options = {"window": conv.window, "uneven": uneven}
            return self.kernel(compute.conv2d_in_groups, arguments, IN_GROUPS, **options)
        arguments = [self.blocked(conv.data), relax.const(groups.pack(conv.weight))]
        return self.kernel(compute.conv2d, arguments, "conv2d", window=conv.window, groups=groups)

    def _winograd(self, conv: OpenConv) -> Any:
        weight = relax.const(winograd.winograd_weight(conv.weight, self.block))
        data = [self.blocked(conv.data)]
        tiles = self.kernel(winograd.winograd_input, data, "winograd_input", window=conv.window)
        products = self.kernel(winograd.winograd_product, [tiles, weight], "winograd_product")
        rows, cols = conv.shape[-2:]
        return self.kernel(winograd.winograd_output, [products], "winograd_output", rows=rows, cols=cols)

    def _winograd_along(self, conv: OpenConv, line: winograd_lines.LineTransform) -> Any:
        weight = relax.const(winograd_lines.line_weight(conv.weight, line, self.block))
        options: dict[str, Any] = {"line": line, "window": conv.window}
        tiles = self.kernel(winograd_lines.line_input, [self.blocked(conv.data)], "winograd_input", **options)
        products = self.kernel(winograd.winograd_product, [tiles, weight], "winograd_product")
        *_, rows, cols = (1, *conv.shape[2:])
        options = {"line": line, "batch": conv.shape[0], "rows": rows, "cols": cols}
        return self.kernel(winograd_lines.line_output, [products], "winograd_output", **options)
