"""Number types of tensors, by TVM's names."""

from typing import Any

HALF = frozenset(("float16", "bfloat16"))
"""Floating point in 16 bits."""


def numpy_type(dtype: str) -> Any:
    """The NumPy type of a tensor's numbers; those that NumPy lacks come from another package."""
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, dtype, None) or dtype)
