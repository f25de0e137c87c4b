"""How far outputs are apart."""

import numpy as np

from tuneloom.tuners.tvm.models.compiling.running import Array


def relative_difference(got: Array, expected: Array) -> float:
    """How far outputs are apart against their size.

    Infinities and not-a-number are as far as can be from anything but themselves: some models give them.
    """
    one, other = np.asarray(got, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if one.shape != other.shape:
        return float("inf")
    plain = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(one[~plain], other[~plain], equal_nan=True):
        return float("inf")
    scale = float(np.linalg.norm(other[plain])) or 1.0
    return float(np.linalg.norm(one[plain] - other[plain])) / scale
