"""Activation functions as expressions of TIR, made of what a CPU can do to whole vectors.

Exponentials of the C library use one lane at a time; a polynomial uses all, with the error of rounding.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tuneloom.compiler.lazy import T, tirx

_DEFAULTS = {
    "affine": (1.0, 0.0),
    "leakyrelu": (0.01, 0.0),
    "thresholdedrelu": (1.0, 0.0),
    "scaledtanh": (1.0, 1.0),
    "hardsigmoid": (0.2, 0.5),
    "elu": (1.0, 0.0),
}
_TAYLOR = (
    1.9875691500e-4,
    1.3981999507e-3,
    8.3334519073e-3,
    4.1665795894e-2,
    1.6666665459e-1,
    5.0000001201e-1,
)
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4


@dataclass(frozen=True, slots=True)
class Activation:
    """The function ONNX calls by this name; raises ValueError for a name it has not."""

    name: str
    alpha: float | None = None
    beta: float | None = None

    def __post_init__(self) -> None:
        if self.name.lower() not in _FUNCTIONS:
            raise ValueError(f"no activation {self.name!r}; known: {', '.join(sorted(_FUNCTIONS))}")

    def __call__(self, x: Any) -> Any:
        kind = self.name.lower()
        alpha, beta = _DEFAULTS.get(kind, (1.0, 1.0))
        a = _real(alpha if self.alpha is None else self.alpha)
        b = _real(beta if self.beta is None else self.beta)
        return _FUNCTIONS[kind](x, a, b)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return _real(1.0) / (_real(1.0) + exponential(-x))


def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return _real(2.0) * sigmoid(x * _real(2.0)) - _real(1.0)


def exponential(x: Any) -> Any:
    """exp(x): a power of two times a polynomial in what remains."""
    bounded = _max(_min(x, 88.3762626647950), -87.3365447504019)
    whole = T.floor(bounded * _real(1.44269504088896341) + _real(0.5))
    rest = bounded - whole * _real(_LN2_HIGH) - whole * _real(_LN2_LOW)
    series = _real(_TAYLOR[0])
    for factor in _TAYLOR[1:]:
        series = series * rest + _real(factor)
    power = T.reinterpret("float32", T.shift_left(T.Cast("int32", whole) + 127, 23))
    return (series * rest * rest + rest + _real(1.0)) * power


def _real(value: float) -> Any:
    return tirx.const(value, "float32")


def _max(x: Any, y: Any) -> Any:
    return T.max(x, _real(y) if isinstance(y, float) else y)


def _min(x: Any, y: float) -> Any:
    return T.min(x, _real(y))


def _where(condition: Any, then: Any, other: Any) -> Any:
    return T.Select(condition, then, other)


_FUNCTIONS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sigmoid": lambda x, a, b: sigmoid(x),
    "tanh": lambda x, a, b: tanh(x),
    "relu": lambda x, a, b: _max(x, 0.0),
    "affine": lambda x, a, b: x * a + b,
    "leakyrelu": lambda x, a, b: _where(x < 0, x * a, x),
    "thresholdedrelu": lambda x, a, b: _where(x > a, x, _real(0.0)),
    "scaledtanh": lambda x, a, b: tanh(x * b) * a,
    "hardsigmoid": lambda x, a, b: _max(_min(x * a + b, 1.0), 0.0),
    "elu": lambda x, a, b: _where(x < 0, (exponential(x) - _real(1.0)) * a, x),
    "softsign": lambda x, a, b: x / (_real(1.0) + _max(x, -x)),
}
