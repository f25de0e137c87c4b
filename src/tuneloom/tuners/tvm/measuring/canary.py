"""A fixed kernel that is timed between batches: if it drifts, the neighbours disturb."""

from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.compiler.lazy import te
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import TargetError
from tuneloom.model import Artifact, Measurement, MeasuringRules
from tuneloom.tuners.tvm.lowering.payloads import pack_kernel
from tuneloom.tuners.tvm.measuring.building import build_kernel
from tuneloom.tuners.tvm.measuring.profiling import profile_kernel

_SIZE = 96
_BUILT: dict[str, bytes] = {}
"""What this process built, or the one that it was forked from, by target."""


def canary_payload(target: TargetSpec) -> bytes:
    """A small matrix product built for the target; empty where there is none, or it can't be built."""
    if not backend_of(target).has_canary:
        return b""
    payload = _BUILT[target.text] = _BUILT.get(target.text) or _built(target)
    return payload


def _built(target: TargetSpec) -> bytes:
    tvm = load_tvm()
    left = te.placeholder((_SIZE, _SIZE), name="left")
    right = te.placeholder((_SIZE, _SIZE), name="right")
    k = te.reduce_axis((0, _SIZE), name="k")
    product = te.compute(
        (_SIZE, _SIZE), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="product"
    )
    function = te.create_prim_func([left, right, product]).with_attr("global_symbol", "main")
    built = build_kernel(pack_kernel(tvm.IRModule({"main": function}), target))
    return built.payload if isinstance(built, Artifact) else b""


def canary_time(target: str) -> float | str | None:
    """What one run of the canary takes on the device that this process holds, in seconds.

    A text says why it can't be built or run; None: there is no canary for this kind of target.
    """
    try:
        payload = canary_payload(resolve_target(target))
    except TargetError as error:
        return str(error)
    if not payload:
        return None
    outcome = profile_kernel(payload, MeasuringRules(), None)
    return outcome.best_s if isinstance(outcome, Measurement) else outcome.message
