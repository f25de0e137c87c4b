"""Kernels as Triton templates: text from a meaning and knobs, compiled without a GPU."""
