"""Intrinsics for GPUs are parsed when a target needs them, and then they are all there."""

import subprocess
import sys

DEFERRED = """
import inspect, sys
from tuneloom.compiler.fast_import import load_intrinsics, load_tvm

def loaded(kind):
    return f"tvm.s_tir.tensor_intrin.{kind}" in sys.modules

load_tvm()
from tvm.s_tir import TensorIntrin
inspect.getmodule(inspect.currentframe())
assert not any(map(loaded, ("cuda", "rocm", "hexagon")))
assert TensorIntrin.get("wmma_fill_16x16x16_f32", allow_missing=True) is None
assert TensorIntrin.get("dot_4x4_i8i8s32_sdot", allow_missing=True) is not None
load_intrinsics("llvm")
assert not loaded("cuda")
load_intrinsics("cuda")
assert loaded("cuda") and not loaded("hexagon")
assert TensorIntrin.get("wmma_fill_16x16x16_f32", allow_missing=True) is not None
"""


def test_intrinsics_of_gpus_are_registered_when_they_are_asked_for() -> None:
    subprocess.run([sys.executable, "-c", DEFERRED], check=True)
