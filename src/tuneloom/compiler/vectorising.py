"""Functions that TVM can compute in vectors, but computes one by one unless it is told so."""

from functools import cache
from typing import Any

_FORGOTTEN = ("tirx.nearbyint", "tirx.rsqrt")
_ATTRIBUTE = "TVectorizable"


@cache
def allow_in_vectors(tvm: Any) -> None:
    """Let loops in vectors stay such if they round or take the root of a reciprocal.

    A loop with any function that TVM holds for one of single numbers is taken apart as a whole: behind a
    product of whole numbers, that takes longer than the product.
    """
    for name in _FORGOTTEN:
        if not tvm.ir.Op.get(name).get_attr(_ATTRIBUTE):
            tvm.ir.register_op_attr(name, _ATTRIBUTE, True)
