"""Tuning of TVM kernels.

Importing this package does not import TVM: that takes seconds, and only workers need it.
"""

from tuneloom.tuners.tvm.tuner import TvmTuner

__all__ = ["TvmTuner"]
