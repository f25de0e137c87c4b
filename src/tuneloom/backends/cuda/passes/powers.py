"""Powers with small exponents as products and roots.

TVM's kernels are compiled for speed: a power is the exponential of a logarithm there, which negative numbers
have none of. The cube in GELU's approximation would be NaN.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tuneloom.backends.cuda.passes.rewriting import constant_of, dtype_of, shape_of
from tuneloom.compiler.lazy import te, tirx, tvm

_MOST = 8
"""Larger exponents are rare, and left as they are."""
_POWER = "relax.power"
Loops = Callable[[Any, float], Any]


def powers_as_products() -> Mapping[str, Any]:
    """How powers become loops, by name."""
    return {_POWER: _legalised}


def _legalised(builder: Any, call: Any) -> Any:
    base, exponent = call.args[0], constant_of(call.args[1])
    loops = None if exponent is None else _loops(exponent, dtype_of(call))
    if loops is None or shape_of(base) is None or shape_of(base) != shape_of(call):
        return tvm.ir.Op.get(_POWER).get_attr("FLegalize")(builder, call)
    return builder.call_te(loops, base, exponent, primfunc_name_hint="power")


def _loops(exponent: float, dtype: str) -> Loops | None:
    real = "float" in dtype
    if real and abs(exponent) == 0.5:
        return _root
    least = -_MOST if real else 1
    return _product if exponent.is_integer() and exponent and least <= exponent <= _MOST else None


def _root(base: Any, exponent: float) -> Any:
    root = tirx.sqrt if exponent > 0 else tirx.rsqrt
    return te.compute(base.shape, lambda *place: root(base(*place)), name="power")


def _product(base: Any, exponent: float) -> Any:
    def at(*place: Any) -> Any:
        product = base(*place)
        for _ in range(abs(int(exponent)) - 1):
            product = product * base(*place)
        return product if exponent > 0 else tirx.const(1, base.dtype) / product

    return te.compute(base.shape, at, name="power")
