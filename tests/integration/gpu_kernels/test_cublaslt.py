"""cuBLASLt as an implementer without a GPU: what it takes, and that its functions enter TVM modules."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from support.kernels import cases
from support.kernels.meanings import MeaningWriter
from tuneloom.backends.cuda.cublaslt.claims import CublasClaim, cublas_claim
from tuneloom.backends.cuda.cublaslt.implementer import CublasImplementer
from tuneloom.backends.meaning import Meaning
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model.trial import Failure

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
    assert (claim.bias, claim.residual) == (2, 3)
    assert (macros["EPILOGUE"], macros["W_TURNED"], macros["W_LEADING"]) == (6, 1, 64)


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
