"""Where a model may work on 8-bit whole numbers: convolutions and products with constant weights."""

from typing import Any

import numpy as np

from tuneloom.backends.cpu.layouts.expressions import constant
from tuneloom.backends.cpu.layouts.kernels.dots import FOUR
from tuneloom.backends.cpu.target import CpuTarget
from tuneloom.backends.quantising import Quantiser, Scale
from tuneloom.compiler.lazy import relax
from tuneloom.compiler.rewriting import shape_of

_STEPS = 255
_CONVOLUTIONS = {
    "relax.nn.conv2d": ("NCHW", "OIHW"),
    "relax.nn.conv1d": ("NCW", "OIW"),
}


class DotQuantiser(Quantiser):
    """Products of 8-bit numbers by an instruction that adds four of them in every lane."""

    def __init__(self, target: CpuTarget) -> None:
        assert target.dots is not None, "the target has no such instruction"
        self._lanes, self._data = target.lanes, target.dots.data

    def is_point(self, expression: Any) -> bool:
        name = getattr(getattr(expression, "op", None), "name", "")
        if not isinstance(expression, relax.Call) or not isinstance(expression.args[0], relax.Var):
            return False
        weight = constant(expression.args[1]) if len(expression.args) > 1 else None
        if weight is None or shape_of(expression.args[0]) is None:
            return False
        if name == "relax.matmul":
            return weight.ndim == 2 and weight.shape[0] % FOUR == 0 and weight.shape[1] >= self._lanes
        attrs = expression.attrs
        if name not in _CONVOLUTIONS or int(attrs.groups) != 1 or min(weight.shape[:2]) < self._lanes:
            return False
        return (str(attrs.data_layout), str(attrs.kernel_layout)) == _CONVOLUTIONS[name]

    def scale(self, low: float, high: float) -> Scale:
        """Steps of equal size, zero among them exactly."""
        low, high = min(low, 0.0), max(high, 0.0)
        step = max(high - low, 1e-12) / _STEPS
        least = int(np.iinfo(self._data).min)
        return Scale(step=step, zero=round(-low / step) + least, dtype=self._data)
