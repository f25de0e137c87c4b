"""Emits the rewritten program and converts between plain and blocked where needed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from tuneloom.backends.cpu.instructions.tiles import KNOWN, SIDE
from tuneloom.backends.cpu.layouts.kernels import compute, dots, pairs, winograd, winograd_lines
from tuneloom.backends.cpu.layouts.shapes import values
from tuneloom.backends.cpu.layouts.shapes.groups import Groups
from tuneloom.backends.cpu.layouts.shapes.uneven_groups import by_channels
from tuneloom.backends.cpu.layouts.shapes.values import (
    Array,
    Centred,
    Derived,
    OpenConcat,
    OpenConv,
    Quantised,
    Resigned,
    Restored,
    Value,
)
from tuneloom.backends.cpu.layouts.shapes.windows import Window
from tuneloom.backends.quantising import Scale
from tuneloom.compiler.lazy import relax, tvm

VOLUME = 5
"""How many axes a plain tensor with a depth has; its blocked form has an image for each plane."""
IN_GROUPS = "conv2d_in_groups"
"""The name of kernels whose sums have terms that are zero under a condition."""
Rule = Callable[["Rewriter", Any, Any], bool]
"""Rewrites what a variable is bound to; returns False when it does not apply."""


class Rewriter:
    """State of one rewriting: what every variable of the old program has become."""

    def __init__(
        self,
        builder: Any,
        lanes: int,
        uses: dict[Any, int],
        made: dict[Any, Any] | None = None,
        dots: str = "",
        whole: str = "",
        *,
        pairs: bool = False,
        tiles: frozenset[str] = frozenset(),
    ) -> None:
        self.lanes = lanes
        self.dots = dots
        self.whole = whole
        self.pairs = pairs
        self._tiles = tiles
        self._halves: dict[Any, Any] = {}
        self._made = made or {}
        self.tuples: dict[Any, list[Value]] = {}
        self._builder = builder
        self._uses = uses
        self._values: dict[Any, Value] = {}
        self._resigned: list[Resigned] = []

    def side(self, kind: str, inner: int) -> int:
        """How many rows of a product, with sums so long, are computed at once in tiles; 1 without tiles."""
        return SIDE if kind in self._tiles and inner % KNOWN[kind].inner == 0 else 1

    def value(self, expression: Any) -> Value:
        """What an operand is now; parameters and constants are plain."""
        if expression in self._values:
            return self._values[expression]
        return Value(shape=static_shape(expression) or (), plain=expression)

    def bind(self, var: Any, value: Value) -> None:
        """Let a variable of the old program stand for this value."""
        self._values[var] = value

    def bind_tuple(self, var: Any, parts: list[Value]) -> None:
        """Let a variable stand for several values; those never read may be missing."""
        self.tuples[var] = parts

    def read_once(self, expression: Any) -> bool:
        """Whether nobody else reads this variable."""
        return self._uses.get(expression, 0) == 1

    def made_by(self, expression: Any, name: str) -> Any | None:
        """The call that makes this value in the old program, if it is one of this operator."""
        call = self._made.get(expression)
        found = getattr(getattr(call, "op", None), "name", "")
        return call if found == f"relax.{name}" else None

    def is_blocked(self, value: Value) -> bool:
        """Whether the value has a blocked form already, or will have one."""
        if isinstance(value, Derived):
            return value.blocked is not None or self.is_blocked(value.origin)
        return value.blocked is not None or (isinstance(value, OpenConv | OpenConcat) and value.plain is None)

    def blocked(self, value: Value) -> Any:
        """The value's blocked form, made when it is missing."""
        if value.blocked is None and isinstance(value, Derived):
            value.blocked = self._converted(value, self.blocked)
        if value.blocked is None and value.plain is None:
            value.blocked = self._close(value)
        if value.blocked is None:
            value.blocked = self.kernel(
                compute.to_blocked, [self.plain(value)], "to_blocked", lanes=self.lanes
            )
        return value.blocked

    def plain(self, value: Value) -> Any:
        """The value's plain form, made when it is missing."""
        if value.plain is None and isinstance(value, Derived):
            value.plain = self._converted(value, self.plain)
        if value.plain is None:
            blocked = self.blocked(value)
            if set(value.shape[2:]) == {1} and value.shape[1] % self.lanes == 0:
                value.plain = self._builder.emit(relax.op.reshape(blocked, value.shape))
            else:
                depth = value.shape[2] if len(value.shape) == VOLUME else 0
                options = {"channels": value.shape[1], "line": len(value.shape) == 3, "depth": depth}
                value.plain = self.kernel(compute.to_plain, [blocked], "to_plain", **options)
        return value.plain

    def resigned(self, value: Value, dtype: str) -> Resigned:
        """8-bit whole numbers in the other of the two types, the same for all that ask."""
        found = next((one for one in self._resigned if one.source is value), None)
        if found is None:
            found = Resigned(shape=value.shape, source=value, dtype=dtype)
            self._resigned.append(found)
        return found

    def _converted(self, value: Derived, form: Callable[[Value], Any]) -> Any:
        """What is derived from another value, in one of the two forms."""
        match value:
            case Quantised():
                return self.kernel(dots.quantised, [form(value.source)], "quantised", scale=value.scale)
            case Restored():
                return self.kernel(dots.restored, [form(value.whole)], "restored", scale=value.whole.scale)
            case Resigned():
                return self.kernel(dots.resigned, [form(value.source)], "resigned", dtype=value.dtype)
            case Centred():
                return self._centred(form(value.narrow), value.zero)

    def _centred(self, narrow: Any, zero: Any) -> Any:
        wide = self._builder.emit(relax.op.astype(narrow, "int32"))
        if isinstance(zero, int):
            if zero == 0:
                return wide
            zero = relax.const(zero, "int32")
        return self._builder.emit(relax.op.subtract(wide, zero))

    def keep(self, var: Any, expression: Any) -> None:
        """Emit an operator as it was, on plain operands."""
        emitted = self._builder.emit(self.plain_tree(expression))
        self.bind(var, Value(shape=static_shape(var) or (), plain=emitted))

    def plain_tree(self, expression: Any) -> Any:
        """An expression with every variable in its plain form."""
        from tvm.relax.expr_functor import PyExprMutator, mutator

        outer = self

        @mutator
        class Plainer(PyExprMutator):  # type: ignore[misc]
            """Looks variables up."""

            def visit_var_(self, var: Any) -> Any:
                return outer.plain(outer._values[var]) if var in outer._values else var

            def visit_dataflow_var_(self, var: Any) -> Any:
                return self.visit_var_(var)

        if isinstance(expression, relax.Var):
            return self.plain(self.value(expression))
        return Plainer(tvm.IRModule()).visit_expr(expression)

    def with_args(self, call: Any, arguments: Sequence[Any]) -> Any:
        """The same operator on other operands."""
        rest = list(call.args)[len(arguments) :]
        return relax.Call(call.op, [*arguments, *rest], call.attrs)

    def emit_blocked(self, var: Any, expression: Any) -> None:
        """Emit an operator whose result is blocked."""
        emitted = self._builder.emit(expression)
        self.bind(var, Value(shape=static_shape(var) or (), blocked=emitted))

    def emit_kernel(
        self, var: Any, make: Callable[..., Any], arguments: list[Any], name: str, **options: Any
    ) -> None:
        """Emit one of our kernels whose result is blocked."""
        emitted = self.kernel(make, arguments, name, **options)
        self.bind(var, Value(shape=static_shape(var) or (), blocked=emitted))

    def emit_plain(
        self, var: Any, make: Callable[..., Any], arguments: list[Any], name: str, **options: Any
    ) -> None:
        """Emit one of our kernels whose result is plain."""
        self.bind_plain(var, self.kernel(make, arguments, name, **options))

    def bind_plain(self, var: Any, emitted: Any) -> None:
        """Let a variable of the old program stand for something plain."""
        self.bind(var, Value(shape=static_shape(var) or (), plain=emitted))

    def emit(self, expression: Any) -> Any:
        """Emit an operator and return what stands for its result."""
        return self._builder.emit(expression)

    def scaled(self, value: Value, scale: Array, shift: Array) -> Value:
        """A blocked value times one number a channel, plus another."""
        grown = relax.op.multiply(self.blocked(value), self.channel_constant(scale, 0.0))
        moved = relax.op.add(self._builder.emit(grown), self.channel_constant(shift, 0.0))
        return Value(shape=value.shape, blocked=self._builder.emit(moved))

    def channel_constant(self, per_channel: Any, fill: float) -> Any:
        """A constant that broadcasts over blocked tensors."""
        return relax.const(values.pack_channels(per_channel, self.lanes, fill))

    def _close(self, value: Value) -> Any:
        if isinstance(value, OpenConcat):
            return self._builder.emit(relax.op.concat([self.blocked(part) for part in value.parts], axis=1))
        assert isinstance(value, OpenConv)
        return self._close_conv(value)

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
            weight = relax.const(values.pack_depthwise_weight(conv.weight, self.lanes))
            arguments = [self.blocked(conv.data), weight]
            return self.kernel(compute.depthwise_conv2d, arguments, "depthwise_conv2d", window=conv.window)
        if first and conv.groups == 1:
            weight = relax.const(values.pack_first_weight(conv.weight, self.lanes))
            arguments = [self.plain(conv.data), weight]
            return self.kernel(compute.conv2d_from_plain, arguments, "conv2d", window=conv.window)
        if winograd.pays(conv, self.lanes):
            return self._winograd(conv)
        line = winograd_lines.line_of(conv, self.lanes)
        if line is not None:
            return self._winograd_along(conv, line)
        if conv.groups > 1:
            return self._grouped(conv)
        if self.pairs:
            weight = relax.const(pairs.pack_pairs(conv.weight, self.lanes))
            arguments = [self.halves(self.blocked(conv.data)), weight]
            return self.kernel(pairs.conv2d_pairs, arguments, "conv2d_pairs", window=conv.window)
        weight = relax.const(values.pack_weight(conv.weight, self.lanes))
        arguments = [self.blocked(conv.data), weight]
        return self.kernel(compute.conv2d, arguments, "conv2d", window=conv.window)

    def halves(self, data: Any) -> Any:
        """Data rounded to bfloat16, once for all that read them."""
        if data not in self._halves:
            self._halves[data] = self.kernel(pairs.halves, [data], "halves")
        return self._halves[data]

    def _is_first(self, conv: OpenConv) -> bool:
        """Whether a convolution reads an image with few channels, as the first layer of a network does."""
        return not self.is_blocked(conv.data) and conv.data.shape[1] < self.lanes

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
        arguments = [data, relax.const(dots.pack_dots(weight, self.lanes)), *last]
        return self.kernel(dots.conv2d_dots, arguments, "conv2d_dots", window=window, zero=scale.zero)

    def product_of_wholes(self, data: Any, weight: Any, last: list[Any], panel: int, scale: Scale) -> Any:
        """A product of whole numbers with weights (out, in)."""
        arguments = [data, relax.const(dots.pack_dot_panels(weight, panel)), *last]
        options = {"width": weight.shape[0], "side": self.side("int8", weight.shape[1])}
        return self.kernel(dots.product_dots, arguments, "product_dots", **options)

    def _grouped(self, conv: OpenConv) -> Any:
        outside, inside = conv.weight.shape[0] // conv.groups, conv.weight.shape[1]
        groups = Groups(count=conv.groups, inside=inside, outside=outside, lanes=self.lanes)
        uneven = by_channels(groups, conv.shape[2:])
        if uneven is not None:
            arguments = [self.blocked(conv.data), relax.const(uneven.pack(conv.weight))]
            options = {"window": conv.window, "uneven": uneven}
            return self.kernel(compute.conv2d_in_groups, arguments, IN_GROUPS, **options)
        arguments = [self.blocked(conv.data), relax.const(groups.pack(conv.weight))]
        return self.kernel(compute.conv2d, arguments, "conv2d", window=conv.window, groups=groups)

    def _winograd(self, conv: OpenConv) -> Any:
        weight = relax.const(winograd.winograd_weight(conv.weight, self.lanes))
        data = [self.blocked(conv.data)]
        tiles = self.kernel(winograd.winograd_input, data, "winograd_input", window=conv.window)
        products = self.kernel(winograd.winograd_product, [tiles, weight], "winograd_product")
        rows, cols = conv.shape[-2:]
        return self.kernel(winograd.winograd_output, [products], "winograd_output", rows=rows, cols=cols)

    def _winograd_along(self, conv: OpenConv, line: winograd_lines.LineTransform) -> Any:
        weight = relax.const(winograd_lines.line_weight(conv.weight, line, self.lanes))
        options: dict[str, Any] = {"line": line, "window": conv.window}
        tiles = self.kernel(winograd_lines.line_input, [self.blocked(conv.data)], "winograd_input", **options)
        products = self.kernel(winograd.winograd_product, [tiles, weight], "winograd_product")
        *_, rows, cols = (1, *conv.shape[2:])
        options = {"line": line, "batch": conv.shape[0], "rows": rows, "cols": cols}
        return self.kernel(winograd_lines.line_output, [products], "winograd_output", **options)

    def kernel(self, make: Callable[..., Any], arguments: list[Any], name: str, **options: Any) -> Any:
        """Emit one of our kernels and return what stands for its result."""
        return self._builder.emit_te(partial(make, **options), *arguments, primfunc_name_hint=name)


def constant(expression: Any) -> Array | None:
    """The values of a constant float tensor, None for anything else."""
    if not isinstance(expression, tvm.ir.GenericConst) or not hasattr(expression.value, "numpy"):
        return None
    found = expression.value.numpy()
    return found if found.dtype == np.float32 else None


def static_shape(expression: Any) -> tuple[int, ...] | None:
    """The shape of a tensor when all extents are known."""
    shape = getattr(getattr(expression, "ty", None), "shape", None)
    if shape is None or not hasattr(shape, "values"):
        return None
    extents = [getattr(extent, "value", None) for extent in shape.values]
    return None if None in extents else tuple(int(str(extent)) for extent in extents)


def scalar(expression: Any) -> float | None:
    """The value of a constant with one element, None for anything else."""
    found = constant(expression)
    return float(found.item()) if found is not None and found.size == 1 else None


def whole_numbers(expression: Any) -> Any | None:
    """The values of a constant tensor of whole numbers, None for anything else."""
    if not isinstance(expression, tvm.ir.GenericConst) or not hasattr(expression.value, "numpy"):
        return None
    found = expression.value.numpy()
    return found if found.dtype.kind in "iu" else None


def whole_number(expression: Any) -> int | None:
    """The value of a constant whole number, None for anything else."""
    found = whole_numbers(expression)
    return int(found.item()) if found is not None and found.size == 1 else None
