"""Powers with small constant exponents as products and roots.

On a CPU, the C library's `pow` computes one number at a time. On a GPU, TVM compiles for speed: a power is
the exponential of a logarithm there, which negative numbers have none of, and the cube in GELU's
approximation would be NaN.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tuneloom.compiler.lazy import ir, relax, te, tirx

_MOST = 8
"""Larger exponents are rare, and left as they are."""
_POWER = "relax.power"
_ROOTS = (0.25, 0.5, 0.75)
Spelled = Callable[[Any], Any]
"""A power of one number."""


def powers_as_products() -> Mapping[str, Any]:
    """How powers become loops, by name."""
    return {_POWER: _legalised}


def _legalised(builder: Any, call: Any) -> Any:
    base, exponent = call.args[0], _exponent(builder, *call.args)
    spelled = None if exponent is None else _spelled(exponent, "float" in str(base.ty.dtype))
    if spelled is None:
        return ir.Op.get(_POWER).get_attr("FLegalize")(builder, call)
    return builder.call_te(_loops(spelled), base, primfunc_name_hint="power")


def _exponent(builder: Any, base: Any, argument: Any) -> float | None:
    """The exponent if it is one constant number that adds no axes."""
    if isinstance(argument, relax.Var):
        argument = builder.lookup_binding(argument)
    content: Any = getattr(argument, "value", None)
    if not hasattr(content, "numpy"):
        return None
    array = content.numpy()
    return float(array.item()) if array.size == 1 and array.ndim <= base.ty.ndim else None


def _spelled(exponent: float, real: bool) -> Spelled | None:
    size = abs(exponent)
    if real and size in _ROOTS:
        spelled = _rooted(size)
    elif size.is_integer() and 1 <= size <= _MOST and (real or exponent > 0):
        spelled = _product(int(size))
    else:
        return None
    return spelled if exponent > 0 else lambda value: 1.0 / spelled(value)


def _product(exponent: int) -> Spelled:
    def product(value: Any) -> Any:
        if exponent == 1:
            return value
        half = _product(exponent // 2)(value)
        return half * half * value if exponent % 2 else half * half

    return product


def _rooted(exponent: float) -> Spelled:
    def rooted(value: Any) -> Any:
        root = tirx.sqrt(value)
        if exponent == 0.5:
            return root
        return tirx.sqrt(root) if exponent == 0.25 else root * tirx.sqrt(root)

    return rooted


def _loops(spelled: Spelled) -> Callable[[Any], Any]:
    return lambda base: te.compute(base.shape, lambda *place: spelled(base(*place)), name="power")
