"""Tuning of TVM kernels with MetaSchedule."""
