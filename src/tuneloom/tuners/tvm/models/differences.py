"""How far outputs are apart."""

import numpy as np

from tuneloom.tuners.tvm.models.final import Array


def relative_difference(got: Array, expected: Array) -> float:
    """How far outputs are apart against their size; not-a-number counts as infinitely far."""
    one, other = np.asarray(got, dtype=np.float64), np.asarray(expected, dtype=np.float64)
    if one.shape != other.shape or not np.isfinite(one).all():
        return float("inf")
    scale = float(np.linalg.norm(other)) or 1.0
    return float(np.linalg.norm(one - other)) / scale
