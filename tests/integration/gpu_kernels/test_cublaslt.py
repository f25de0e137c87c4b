"""cuBLASLt as an implementer without a GPU: what it takes, and that its functions enter TVM modules."""

import ctypes
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent))
from relax_models import model

from support.kernels import cases
from support.kernels.meanings import MeaningWriter
from tuneloom.backends.cuda.cublaslt.claims import CublasClaim, cublas_claim
from tuneloom.backends.cuda.cublaslt.implementer import CublasImplementer
from tuneloom.backends.meaning import Meaning
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model import SearchOptions, TensorInfo
from tuneloom.model.space import configured, implementer_of
from tuneloom.model.trial import Failure
from tuneloom.tuners.tvm.importing.sources import ImportedModel
from tuneloom.tuners.tvm.lowering.graph import LoweredModel, lower
from tuneloom.tuners.tvm.lowering.tasks import extract, kernel_calls
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.converting import with_arguments_converted
from tuneloom.tuners.tvm.models.compiling.inserts import told
from tuneloom.tuners.tvm.models.compiling.kernels import implementers_in, with_schedules
from tuneloom.tuners.tvm.search.joint import open_search

pytestmark = pytest.mark.integration
HOPPER = {"kind": "cuda", "arch": "sm_90"}
needs_a_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def claimed(meaning: Meaning) -> CublasClaim | None:
    return cublas_claim(meaning, HOPPER)


def residual_product() -> Meaning:
    w = MeaningWriter()
    x, weight, bias, other = w.input((1, 32, 64)), w.input((48, 64)), w.input((48,)), w.input((1, 32, 48))
    turned = w.step("permute_dims", (weight,), (64, 48), axes=[1, 0])
    y = w.step("matmul", (x, turned), (1, 32, 48))
    y = w.step("add", (y, bias), (1, 32, 48))
    y = w.step("add", (other, y), (1, 32, 48))
    return w.meaning(w.step("nn.relu", (y,), (1, 32, 48)))


def test_bias_and_gelu_become_an_epilogue() -> None:
    claim = claimed(cases.product_with_gelu(64, 128, 256))
    assert claim is not None
    macros = claim.macros({"algorithm": 3}, "mine")
    assert (macros["EPILOGUE"], macros["ALGORITHM"], macros["W_LEADING"], macros["X_LEADING"]) == (
        36,
        3,
        128,
        256,
    )
    assert (macros["W_TURNED"], macros["X_TURNED"]) == (0, 0)


def test_a_residual_is_added_and_a_transposed_factor_read_in_place() -> None:
    claim = claimed(residual_product())
    assert claim is not None
    macros = claim.macros({"algorithm": 0}, "mine")
    assert (claim.epilogue.bias, claim.epilogue.residual) == (2, 3)
    assert (macros["EPILOGUE"], macros["W_TURNED"], macros["W_LEADING"]) == (6, 1, 64)


def perceptron(builder: Any, values: list[Any]) -> Any:
    """A product in half precision with bias and GELU, as importers write it: rounded behind the bias."""
    from tvm import relax

    op, random = relax.op, np.random.default_rng(0)
    weight, bias = (
        relax.const(random.uniform(-1, 1, shape).astype("float16")) for shape in ((64, 128), (128,))
    )
    wide = [builder.emit(op.astype(one, "float32")) for one in (values[0], weight, bias)]
    sums = builder.emit(op.add(builder.emit(op.matmul(*wide[:2])), wide[2]))
    return op.nn.gelu(builder.emit(op.astype(sums, "float16")))


def lowered_perceptron() -> LoweredModel:
    info = TensorInfo(name="x", shape=(32, 64), dtype="float16")
    imported = ImportedModel(
        name="it", module=model(perceptron, ((32, 64), "float16")), inputs=(info,), outputs=(), digest=""
    )
    return lower(imported, resolve_target(json.dumps(HOPPER)))


def test_a_product_in_half_with_a_bias_in_single_precision_is_claimed() -> None:
    lowered = lowered_perceptron()
    (name,) = (name for name in kernel_calls(lowered.module) if "matmul" in name)
    meaning = lowered.meanings[name]
    assert [one.dtype for one in meaning.inputs] == ["float16", "float16", "float32"]
    claim = claimed(meaning)
    assert claim is not None and claim.macros({"algorithm": 0}, "mine")["EPILOGUE"] == 36
    assert [one.dtype for one in claim.inputs] == ["float16"] * 3


@needs_a_compiler
def test_a_bias_is_converted_when_the_model_is_built() -> None:
    lowered = lowered_perceptron()
    (task,) = (one for one in extract(lowered) if "matmul" in one.name)
    module = with_schedules(lowered, {task.key: configured("cublaslt", {"algorithm": 0})})
    (call,) = (
        binding.value
        for binding in module["main"].body.blocks[0].bindings
        if getattr(binding.value, "args", None) and task.name in str(binding.value.args[0])
    )
    assert [str(one.ty.dtype) for one in call.args[1].fields] == ["float16"] * 3
    (before,) = (one for one in constants(lowered.module) if one.shape == (128,))
    (after,) = (one for one in constants(module) if one.shape == (128,))
    assert (str(before.dtype), str(after.dtype)) == ("float32", "float16")
    np.testing.assert_array_equal(before, after)


@needs_a_compiler
def test_the_model_with_a_converted_bias_compiles() -> None:
    lowered = lowered_perceptron()
    (task,) = (one for one in extract(lowered) if "matmul" in one.name)
    compiled = build_model(lowered, {task.key: configured("cublaslt", {"algorithm": 0})})
    assert not compiled.unscheduled
    assert sorted(str(one.dtype) for one in compiled.parameters) == ["float16", "float16"]


@needs_a_compiler
@pytest.mark.parametrize("name", ["cublaslt", "triton"])
def test_a_manifest_names_the_library_only_where_its_code_is_in_the_model(name: str) -> None:
    pytest.importorskip("triton", reason="the extra triton is not installed")
    lowered = lowered_perceptron()
    (task,) = (one for one in extract(lowered) if "matmul" in one.name)
    exported = told(implementers_in(lowered, {task.key: configured(name, {"algorithm": 0})}))
    assert exported.implementers == (name,)
    needed = [library for one in exported.requires for library in one["libraries"]]
    assert needed == (["libcublasLt.so.13", "libcublasLt.so.12"] if name == "cublaslt" else [])


@needs_a_compiler
@pytest.mark.parametrize("alone", [False, True])
def test_a_self_contained_model_is_searched_without_the_library(alone: bool) -> None:
    pytest.importorskip("triton", reason="the extra triton is not installed")
    (task,) = (one for one in extract(lowered_perceptron()) if "matmul" in one.name)
    search = open_search(task, SearchOptions(seed=0, trials=12, batch=12, self_contained=alone), ())
    makers = {implementer_of(one.configuration) for one in search.select(12)}
    assert ("cublaslt" in makers) is not alone and "triton" in makers


@needs_a_compiler
def test_what_is_no_constant_is_converted_when_the_model_runs() -> None:
    w = MeaningWriter()
    inputs = [w.input((32, 64), "float16"), w.input((64, 128), "float16"), w.input((128,), "float32")]
    y = w.step("matmul", (inputs[0], inputs[1]), (32, 128), "float32")
    y = w.step("add", (y, inputs[2]), (32, 128), "float32")
    claim = claimed(w.meaning(w.step("astype", (y,), (32, 128), "float16")))
    assert claim is not None
    made = CublasImplementer().insert(claim, {"algorithm": 0}, "mine")
    assert not isinstance(made, Failure)

    def called(builder: Any, values: list[Any]) -> Any:
        from tvm import relax

        gvar = builder.add_func(made.function, "kernel")
        return builder.emit(relax.call_tir(gvar, values, relax.TensorType((32, 128), "float16")))

    plain = model(called, *[((32, 64), "float16"), ((64, 128), "float16"), ((128,), "float32")])
    changed = with_arguments_converted(plain, {"kernel": made.function})
    assert list(kernel_calls(changed)) == ["cast", "kernel"]


def constants(module: Any) -> list[Any]:
    from tvm import ir, relax

    found: list[Any] = []
    relax.analysis.post_order_visit(
        module["main"],
        lambda node: found.append(node.value.numpy()) if isinstance(node, ir.GenericConst) else None,
    )
    return found


def test_exact_gelu_is_left_to_others_in_single_precision() -> None:
    assert claimed(cases.product_with_gelu(64, 64, 64, "float32")) is None
    assert claimed(cases.plain_product(64, 64, 64, "float32")) is not None


@pytest.mark.parametrize("name", ["gated product", "joined heads", "split heads", "attention", "convolution"])
def test_what_the_library_can_not_do_is_not_claimed(name: str) -> None:
    assert claimed(cases.CASES[name][1]()) is None


def test_an_algorithm_beyond_the_list_is_a_failure() -> None:
    claim = claimed(cases.plain_product(64, 64, 64))
    assert claim is not None
    assert isinstance(CublasImplementer().build(claim, {"algorithm": 99}, "mine"), Failure)


@needs_a_compiler
def test_without_the_library_a_call_returns_an_error(tmp_path: Path) -> None:
    claim = claimed(residual_product())
    assert claim is not None
    code = CublasImplementer().build(claim, {"algorithm": 0}, "mine")
    assert isinstance(code, bytes)
    (tmp_path / "it.o").write_bytes(code)
    command = ["cc", "-shared", "-o", str(tmp_path / "it.so"), str(tmp_path / "it.o"), "-ldl"]
    subprocess.run(command, check=True)
    try:
        ctypes.CDLL("libcublasLt.so.13")
    except OSError:
        function = ctypes.CDLL(str(tmp_path / "it.so")).mine
        assert function(*[ctypes.c_void_p(0)] * 6) == 1


@needs_a_compiler
def test_the_function_enters_a_tvm_module() -> None:
    tvm = load_tvm()
    claim = claimed(residual_product())
    assert claim is not None
    made = CublasImplementer().insert(claim, {"algorithm": 0}, "mine")
    assert not isinstance(made, Failure)
    assert [module.kind for module in made.modules] == ["static_library"]
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90"}, host="llvm")
    built = tvm.compile(
        tvm.IRModule({"main": made.function.with_attr("global_symbol", "main")}), target=target
    )
    text = str(built.mod.inspect_source())
    assert "@mine(" in text and "i64 33554432" in text
