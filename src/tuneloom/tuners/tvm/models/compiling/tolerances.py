"""How far the outputs of a tuned model may be from those of the untuned one: as far as its types round."""

from typing import Any

from tuneloom.model import EXACT

BY_TYPE = {"bfloat16": 3e-2, "float16": 1e-2, "int8": 1e-2, "uint8": 1e-2}
"""What some roundings come to, relative to the norm of the outputs.

One rounding is up to 4e-3 in bfloat16 and in 8-bit whole numbers, 5e-4 in float16. Sums in another order
may fall on the other side of one.
"""


def tolerance_for(module: Any) -> float:
    """The tolerance of the coarsest type that the calls of a lowered model write."""
    return max((BY_TYPE.get(kind, EXACT) for kind in _written(module["main"])), default=EXACT)


def _written(main: Any) -> set[str]:
    blocks = getattr(main.body, "blocks", ())
    return {str(getattr(binding.var.ty, "dtype", "")) for block in blocks for binding in block.bindings}
