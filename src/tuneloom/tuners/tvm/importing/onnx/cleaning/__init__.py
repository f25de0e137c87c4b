"""ONNX graphs made simple before TVM sees them.

All shapes are numbers once the inputs are bound, so most of what exporters leave in a graph
can be computed at once: arithmetic on shapes, branches that depend on it, loops with a known
number of turns. What remains are operators on tensors of known types.
"""

from tuneloom.tuners.tvm.importing.onnx.cleaning.graph import CleanGraph, clean

__all__ = ["CleanGraph", "clean"]
