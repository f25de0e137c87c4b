"""How far the outputs of a tuned model may be from those of the untuned one: as far as its types round."""

from typing import Any

from tuneloom.model import EXACT
from tuneloom.tuners.tvm.fast_import import load_tvm

BY_TYPE = {"bfloat16": 3e-2, "float16": 1e-2, "int8": 1e-2, "uint8": 1e-2}
"""What some roundings come to, relative to the norm of the outputs.

One rounding is up to 4e-3 in bfloat16 and in 8-bit whole numbers, 5e-4 in float16. Sums in another order
may fall on the other side of one.
"""


def tolerance_for(module: Any) -> float:
    """The tolerance of the coarsest type that the kernels of a lowered model write."""
    return max((BY_TYPE.get(kind, EXACT) for kind in _written(module)), default=EXACT)


def _written(module: Any) -> set[str]:
    tvm = load_tvm()
    kernels = (one for one in module.functions.values() if isinstance(one, tvm.tirx.PrimFunc))
    return {str(buffers[-1].dtype) for one in kernels if (buffers := _buffers(one))}


def _buffers(kernel: Any) -> list[Any]:
    return [kernel.buffer_map[param] for param in kernel.params if param in kernel.buffer_map]
