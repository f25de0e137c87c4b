"""Where a model may work on 8-bit whole numbers: convolutions and products with constant weights."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.kernels.dots import FOUR, Scale
from tuneloom.backends.cpu.layouts.rewriter import constant, static_shape
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.renewing import bindings_of, with_outputs

_STEPS = 255
_CONVOLUTIONS = {
    "relax.nn.conv2d": ("NCHW", "OIHW"),
    "relax.nn.conv1d": ("NCW", "OIW"),
}


def is_point(expression: Any, lanes: int) -> bool:
    """Whether dot products may compute this call."""
    name = getattr(getattr(expression, "op", None), "name", "")
    if not isinstance(expression, relax.Call) or not isinstance(expression.args[0], relax.Var):
        return False
    weight = constant(expression.args[1]) if len(expression.args) > 1 else None
    if weight is None or static_shape(expression.args[0]) is None:
        return False
    if name == "relax.matmul":
        return weight.ndim == 2 and weight.shape[0] % FOUR == 0 and weight.shape[1] >= lanes
    attrs = expression.attrs
    if name not in _CONVOLUTIONS or int(attrs.groups) != 1 or min(weight.shape[:2]) < lanes:
        return False
    return (str(attrs.data_layout), str(attrs.kernel_layout)) == _CONVOLUTIONS[name]


def sources_of(module: Any, lanes: int) -> list[Any]:
    """The variables of `main` that dot products would read, each once; none where it has several blocks."""
    bindings = bindings_of(module)
    found = [binding.value.args[0] for binding in bindings if is_point(binding.value, lanes)]
    return list(dict.fromkeys(found))


def with_ranges(module: Any, sources: list[Any]) -> Any:
    """The module whose `main` gives, after its outputs, the least and greatest value of these variables."""
    makers = (relax.op.min, relax.op.max)
    return with_outputs(module, lambda builder: [builder.emit(of(one)) for one in sources for of in makers])


def scale_of(low: float, high: float, dtype: str) -> Scale:
    """Steps that reach from the least to the greatest value, zero among them exactly."""
    low, high = min(low, 0.0), max(high, 0.0)
    step = max(high - low, 1e-12) / _STEPS
    return Scale(step=step, zero=round(-low / step) + int(np.iinfo(dtype).min), dtype=dtype)


def rounded(module: Any, scales: Mapping[Any, Scale], lanes: int) -> Any:
    """The module with every dot product reading its data through 8-bit whole numbers."""
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Rounding(PyExprMutator):  # type: ignore[misc]
        """Puts a pair of conversions before each point; a variable has one pair for all that read it."""

        def __init__(self, module: Any) -> None:
            super().__init__(module)
            self.pairs: dict[Any, Any] = {}

        def visit_call_(self, call: Any) -> Any:
            source = call.args[0] if is_point(call, lanes) else None
            visited = super().visit_call_(call)
            if source is None or source not in scales:
                return visited
            if source not in self.pairs:
                self.pairs[source] = self._pair(visited.args[0], scales[source])
            return relax.Call(visited.op, [self.pairs[source], *visited.args[1:]], visited.attrs)

        def _pair(self, data: Any, scale: Scale) -> Any:
            step = relax.const(np.float32(scale.step))
            zero = relax.const(np.array(scale.zero, dtype=scale.dtype))
            whole = self.builder_.emit(relax.op.quantize(data, step, zero, -1, scale.dtype))
            return self.builder_.emit(relax.op.dequantize(whole, step, zero, -1, "float32"))

    mutated = Rounding(module)
    for gvar, function in module.functions.items():
        if gvar.name_hint == "main":
            mutated.builder_.update_func(gvar, mutated.visit_expr(function))
    return mutated.builder_.get()
