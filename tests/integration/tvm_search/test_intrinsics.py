"""Intrinsics for GPUs are parsed when a schedule needs them, and then they are all there."""

import json
import subprocess
import sys

import pytest

import tuneloom.backends.base
import tuneloom.transfer.traces
from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.lazy import te, tvm
from tuneloom.tuners.tvm.lowering.payloads import pack_kernel

GPU = '{"kind": "cuda", "arch": "sm_90"}'
DEFERRED = f"""
import inspect, sys
from tuneloom.backends.implementers import ModelKernel
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_intrinsics, load_tvm
from tuneloom.compiler.lazy import te
from tuneloom.tuners.tvm.search.opening import opened

def loaded(kind):
    return f"tvm.s_tir.tensor_intrin.{{kind}}" in sys.modules

tvm = load_tvm()
from tvm.s_tir import TensorIntrin
inspect.getmodule(inspect.currentframe())
assert not any(map(loaded, ("cuda", "rocm", "hexagon")))
assert TensorIntrin.get("wmma_fill_16x16x16_f32", allow_missing=True) is None
assert TensorIntrin.get("dot_4x4_i8i8s32_sdot", allow_missing=True) is not None
load_intrinsics("llvm")
target = resolve_target('{GPU}')
target.to_tvm()
assert not loaded("cuda")

a, b = (te.placeholder((128, 128), "float16", name=name) for name in "ab")
k = te.reduce_axis((0, 128), name="k")
c = te.compute((128, 128), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="c")
module = tvm.IRModule({{"main": te.create_prim_func([a, b, c])}})
_, schedules = opened(ModelKernel(module=module, meaning=None, target=target))
assert any("wmma" in str(schedule.trace) for schedule in schedules)
assert loaded("cuda") and not loaded("hexagon")
assert TensorIntrin.get("wmma_fill_16x16x16_f32", allow_missing=True) is not None
"""


def test_intrinsics_of_gpus_are_registered_when_a_space_needs_them() -> None:
    subprocess.run([sys.executable, "-c", DEFERRED], check=True)


NAMES = """
import json, sys
if sys.argv[1] == "ours":
    from tuneloom.compiler.fast_import import load_tvm
    load_tvm()
import tvm, tvm.relax, tvm.s_tir.meta_schedule
from tvm.ir import Op
names = sorted(map(str, Op.list_op_names()))
print(json.dumps([(name, str(Op.get(name).get_attr("TScriptPrinterName"))) for name in names]))
"""


def test_operators_have_the_names_that_tvm_gives_them() -> None:
    ours, theirs = (
        subprocess.run([sys.executable, "-c", NAMES, one], check=True, capture_output=True).stdout
        for one in ("ours", "theirs")
    )
    assert json.loads(ours) == json.loads(theirs)


def test_only_traces_that_ask_for_instructions_need_intrinsics(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(tuneloom.backends.base, "load_intrinsics", asked.append)
    target = resolve_target(GPU)
    follow = backend_of(target).follow
    follow(json.dumps([[["GetSBlock", [], ["c", "main"], ["b0"]]], []]), target)
    assert asked == []
    follow(json.dumps([[["Tensorize", ["b0"], ["wmma_fill_16x16x16_f32", 1], []]], []]), target)
    assert asked == ["cuda"]


def test_a_kernel_that_is_given_a_foreign_trace_has_the_intrinsics_of_its_target(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(tuneloom.transfer.traces, "load_intrinsics", asked.append)
    x = te.placeholder((16,), "float32", name="x")
    doubled = te.create_prim_func([x, te.compute((16,), lambda i: x[i] * 2.0, name="y")])
    payload = pack_kernel(tvm.IRModule({"main": doubled}), resolve_target(), None)
    tuneloom.transfer.traces.fit_traces([(payload, "[[], []]")])
    assert asked == ["llvm"]
