"""Values of a program in two forms, plain and blocked: each is made when somebody first asks for it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any

from tuneloom.backends.cpu.layouts.kernels import compute, dots
from tuneloom.backends.cpu.layouts.shapes import values
from tuneloom.backends.cpu.layouts.shapes.values import (
    Centred,
    Derived,
    OpenConcat,
    OpenConv,
    Quantised,
    Resigned,
    Restored,
    Value,
)
from tuneloom.compiler.lazy import relax

VOLUME = 5
"""How many axes a plain tensor with a depth has; its blocked form has an image for each plane."""


class Forms(ABC):
    """Emits what converts values, and our own kernels; a blocked tensor has `block` channels side by side."""

    def __init__(self, builder: Any, block: int) -> None:
        self.block = block
        self._builder = builder
        self._resigned: list[Resigned] = []

    @abstractmethod
    def _close_conv(self, conv: OpenConv) -> Any:
        """A convolution that nothing more is joined to, blocked."""

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
                compute.to_blocked, [self.plain(value)], "to_blocked", lanes=self.block
            )
        return value.blocked

    def plain(self, value: Value) -> Any:
        """The value's plain form, made when it is missing."""
        if value.plain is None and isinstance(value, Derived):
            value.plain = self._converted(value, self.plain)
        if value.plain is None:
            blocked = self.blocked(value)
            if set(value.shape[2:]) == {1} and value.shape[1] % self.block == 0:
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

    def _close(self, value: Value) -> Any:
        if isinstance(value, OpenConcat):
            return self._builder.emit(relax.op.concat([self.blocked(part) for part in value.parts], axis=1))
        assert isinstance(value, OpenConv)
        return self._close_conv(value)

    def emit(self, expression: Any) -> Any:
        """Emit an operator and return what stands for its result."""
        return self._builder.emit(expression)

    def kernel(self, make: Callable[..., Any], arguments: list[Any], name: str, **options: Any) -> Any:
        """Emit one of our kernels and return what stands for its result."""
        return self._builder.emit_te(partial(make, **options), *arguments, primfunc_name_hint=name)

    def channel_constant(self, per_channel: Any, fill: float) -> Any:
        """A constant that broadcasts over blocked tensors."""
        return relax.const(values.pack_channels(per_channel, self.block, fill))
