"""Activations written out in exponentials and error functions, which have vector forms.

Left as they are, they would be calls of the C library for one number at a time.
"""

import math
from collections.abc import Callable
from typing import Any

from tuneloom.backends.cpu.layouts.rewriter import Rewriter, Rule
from tuneloom.compiler.lazy import relax

Formula = Callable[[Rewriter, Any], Any]
"""The last operator of a formula, the others being emitted already."""


def _sigmoid(rewriter: Rewriter, x: Any) -> Any:
    op, one = relax.op, relax.const(1.0, "float32")
    power = rewriter.emit(op.exp(rewriter.emit(op.negative(x))))
    return op.divide(one, rewriter.emit(op.add(power, one)))


def _silu(rewriter: Rewriter, x: Any) -> Any:
    return relax.op.multiply(x, rewriter.emit(_sigmoid(rewriter, x)))


def _gelu(rewriter: Rewriter, x: Any) -> Any:
    op = relax.op
    half, one = relax.const(0.5, "float32"), relax.const(1.0, "float32")
    root = relax.const(math.sqrt(0.5), "float32")
    bell = rewriter.emit(op.add(rewriter.emit(op.erf(rewriter.emit(op.multiply(x, root)))), one))
    return op.multiply(rewriter.emit(op.multiply(x, half)), bell)


def _written_out(formula: Formula) -> Rule:
    def rule(rewriter: Rewriter, var: Any, call: Any) -> bool:
        if str(var.ty.dtype) != "float32":
            return False
        data = rewriter.value(call.args[0])
        if rewriter.is_blocked(data):
            rewriter.emit_blocked(var, formula(rewriter, rewriter.blocked(data)))
        else:
            rewriter.bind_plain(var, rewriter.emit(formula(rewriter, rewriter.plain(data))))
        return True

    return rule


RULES: dict[str, Rule] = {
    "relax.sigmoid": _written_out(_sigmoid),
    "relax.nn.silu": _written_out(_silu),
    "relax.nn.gelu": _written_out(_gelu),
}
