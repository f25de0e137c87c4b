"""Code of implementers for narrow floats enters TVM modules, whose hosts hold these as whole numbers."""

import shutil
from typing import Any

import pytest

from support.kernels import cases
from tuneloom.backends.cuda.cublaslt.implementer import CublasImplementer
from tuneloom.backends.cuda.cudnn.implementer import CudnnImplementer
from tuneloom.backends.cuda.triton.implementer import TritonImplementer
from tuneloom.backends.implementers import Implementer, ModelKernel
from tuneloom.backends.meaning import Meaning
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model.trial import Failure

pytestmark = pytest.mark.integration
pytest.importorskip("triton", reason="the extra triton is not installed")
PRODUCT = cases.product_with_gelu(32, 64, 64, "bfloat16")
CONVOLUTION = cases.convolution((1, 6, 6, 16), 16, 3, "bfloat16", residual=True)


@pytest.mark.parametrize(
    ("implementer", "meaning"),
    [
        (TritonImplementer(), PRODUCT),
        (TritonImplementer(), cases.product_in_eight_bits(16, 32, 64)),
        (CublasImplementer(), PRODUCT),
        (CudnnImplementer(), CONVOLUTION),
    ],
)
def test_an_insert_is_compiled_for_a_host(implementer: Implementer, meaning: Meaning) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    tvm, target = load_tvm(), resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    claim: Any = implementer.claim(ModelKernel(module=None, meaning=meaning, target=target))
    made = implementer.insert(claim, claim.space.guesses[0], "mine")
    assert not isinstance(made, Failure), made
    module = tvm.IRModule({"main": made.function.with_attr("global_symbol", "main")})
    built = tvm.compile(module, target=tvm.target.Target({"kind": "cuda", "arch": "sm_90"}, host="llvm"))
    assert "mine" in str(built.mod.inspect_source())
