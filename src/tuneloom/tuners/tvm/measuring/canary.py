"""A fixed kernel that is timed between batches: if it drifts, the neighbours disturb."""

from tuneloom.model import Artifact
from tuneloom.tuners.tvm.fast_import import load_tvm
from tuneloom.tuners.tvm.lowering.payloads import pack_kernel
from tuneloom.tuners.tvm.measuring.building import build_kernel
from tuneloom.tuners.tvm.targets.target import TargetSpec

_SIZE = 96


def canary_payload(target: TargetSpec) -> bytes:
    """A small matrix product built for the target; empty where it can't be built."""
    tvm = load_tvm()
    from tvm import te

    left = te.placeholder((_SIZE, _SIZE), name="left")
    right = te.placeholder((_SIZE, _SIZE), name="right")
    k = te.reduce_axis((0, _SIZE), name="k")
    product = te.compute(
        (_SIZE, _SIZE), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="product"
    )
    function = te.create_prim_func([left, right, product]).with_attr("global_symbol", "main")
    if target.kind != "llvm":
        return b""
    built = build_kernel(pack_kernel(tvm.IRModule({"main": function}), target))
    return built.payload if isinstance(built, Artifact) else b""
