"""Loops of operators that sum in single precision whatever their type: TVM's own sum in half precision."""

from collections.abc import Callable, Mapping
from typing import Any

from tuneloom.compiler.number_types import HALF
from tuneloom.compiler.rewriting import dtype_of, name_of

_SUMMING = (
    *("relax.mean", "relax.sum", "relax.variance", "relax.std", "relax.nn.softmax", "relax.nn.log_softmax"),
    *("relax.nn.layer_norm", "relax.nn.rms_norm", "relax.nn.group_norm", "relax.nn.instance_norm"),
    *(f"relax.nn.{kind}avg_pool{n}d" for kind in ("", "adaptive_") for n in (1, 2, 3)),
)


def summing_loops() -> Mapping[str, Any]:
    """How operators that sum become loops, by name."""
    return {name: _in_single(name) for name in _SUMMING}


def sums_in_half(call: Any) -> bool:
    """Whether TVM's own loops of an operator would add many numbers in half precision."""
    return dtype_of(call) in HALF and f"relax.{name_of(call)}" in _SUMMING


def _in_single(name: str) -> Callable[[Any, Any], Any]:
    """TVM's loops of an operator, between casts where it is in half precision."""

    def legalise(builder: Any, call: Any) -> Any:
        from tvm.ir import Op

        half = dtype_of(call) in HALF
        return Op.get(name).get_attr("FLegalize")(
            _Widening(builder, dtype_of(call)) if half else builder, call
        )

    return legalise


class _Widening:
    """As much of a builder as legalising needs: loops get their operands in single precision."""

    def __init__(self, builder: Any, dtype: str) -> None:
        self._builder, self._dtype = builder, dtype

    def call_te(self, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        from tvm import te, topi

        def wide(*given: Any, **others: Any) -> Any:
            operands = [
                topi.cast(one, "float32") if isinstance(one, te.Tensor) and str(one.dtype) in HALF else one
                for one in given
            ]
            return topi.cast(function(*operands, **others), self._dtype)

        hint = named.pop("primfunc_name_hint", None) or function.__name__.removeprefix("te_").lstrip("_")
        return self._builder.call_te(wide, *arguments, **named, primfunc_name_hint=hint)
