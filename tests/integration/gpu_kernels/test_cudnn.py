"""cuDNN as an implementer without a GPU: what it takes, and that its functions enter TVM modules."""

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from support.kernels import cases
from support.kernels.cases import convolution
from support.kernels.meanings import MeaningWriter
from tuneloom.backends.cuda.backend import BACKEND
from tuneloom.backends.cuda.cudnn.claims import CudnnClaim, cudnn_claim
from tuneloom.backends.cuda.cudnn.implementer import CudnnImplementer
from tuneloom.backends.meaning import Meaning
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model.trial import Failure
from tuneloom.tuners.tvm.models.compiling.inserts import told

pytestmark = pytest.mark.integration
HOPPER = {"kind": "cuda", "arch": "sm_90"}
needs_a_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def claimed(meaning: Meaning) -> CudnnClaim:
    claim = cudnn_claim(meaning, HOPPER)
    assert claim is not None
    return claim


def test_bias_residual_and_relu_belong_to_the_convolution() -> None:
    claim = claimed(convolution((2, 14, 12, 64), 128, 3, stride=2, residual=True))
    macros = claim.macros({"algorithm": 1}, "mine")
    assert (claim.factors, claim.epilogue.bias, claim.epilogue.residual) == ((0, 1), 2, 3)
    assert (macros["ACTIVATED"], macros["ALGORITHM"], macros["TYPE"], macros["MATH"]) == (1, 1, 2, 1)
    sizes = [macros[name] for name in ("NUMBER", "HEIGHT", "WIDTH", "CHANNELS", "FILTERS", "OUT_HEIGHT")]
    assert sizes == [2, 14, 12, 64, 128, 7]
    window = [macros[f"{name}_WIDTH"] for name in ("WINDOW", "PAD", "STRIDE", "GAP", "OUT")]
    assert window == [3, 1, 2, 1, 6]


def test_single_precision_stays_off_tensor_cores_unless_tf32_is_asked_for() -> None:
    exact = convolution((1, 6, 6, 16), 16, 3, "float32")
    steps = [replace(step, attributes={**step.attributes, "precision": "tf32"}) for step in exact.steps]
    rounded = replace(exact, steps=tuple(steps))
    found = [claimed(one).macros({"algorithm": 0}, "mine")["MATH"] for one in (exact, rounded)]
    assert found == [3, 0]


def test_a_convolution_along_a_line_is_one_of_images_one_row_high() -> None:
    w = MeaningWriter()
    x, weight = w.input((2, 50, 24), "float16"), w.input((20, 3, 24), "float16")
    layouts = {"data_layout": "NWC", "kernel_layout": "OWI", "out_layout": "NWC", "groups": 1}
    attributes = {"strides": [2], "padding": [1, 1], "dilation": [1], **layouts}
    line = w.meaning(w.step("nn.conv1d", (x, weight), (2, 25, 20), "float16", **attributes))
    macros = claimed(line).macros({"algorithm": 0}, "mine")
    sizes = [macros[name] for name in ("HEIGHT", "WIDTH", "WINDOW_HEIGHT", "WINDOW_WIDTH", "STRIDE_WIDTH")]
    assert sizes == [1, 50, 1, 3, 2]


@pytest.mark.parametrize("name", ["convolution in NCHW", "depthwise convolution", "product with GELU"])
def test_what_the_library_can_not_do_well_is_not_claimed(name: str) -> None:
    assert cudnn_claim(cases.CASES[name][1](), HOPPER) is None


def test_padding_that_differs_between_sides_is_not_claimed() -> None:
    even = convolution((1, 6, 6, 16), 16, 3)
    steps = [
        replace(step, attributes={**step.attributes, "padding": [1, 1, 1, 2]}) if n == 0 else step
        for n, step in enumerate(even.steps)
    ]
    assert cudnn_claim(replace(even, steps=tuple(steps)), HOPPER) is None


def test_the_manifest_names_the_library_with_its_version() -> None:
    (needed,) = told([CudnnImplementer()]).requires
    assert needed == {"libraries": {"libcudnn.so.9": "nvidia-cudnn-cu13"}, "implementer": "cudnn"}


@needs_a_compiler
def test_it_competes_with_templates() -> None:
    pytest.importorskip("triton", reason="the extra triton is not installed")
    target = resolve_target('{"kind": "cuda", "arch": "sm_90"}')
    assert [one.name for one in BACKEND.implementers(target)] == ["triton", "cublaslt", "cudnn"]


@needs_a_compiler
def test_without_the_library_a_call_returns_an_error(tmp_path: Path) -> None:
    claim = claimed(convolution((1, 6, 6, 16), 16, 3))
    code = CudnnImplementer().build(claim, {"algorithm": 0}, "mine")
    assert isinstance(code, bytes), code
    (tmp_path / "it.o").write_bytes(code)
    command = ["cc", "-shared", "-o", str(tmp_path / "it.so"), str(tmp_path / "it.o"), "-ldl"]
    subprocess.run(command, check=True)
    try:
        ctypes.CDLL("libcudnn.so.9")
    except OSError:
        function = ctypes.CDLL(str(tmp_path / "it.so")).mine
        assert function(*[ctypes.c_void_p(0)] * 6) == 1


def test_an_algorithm_beyond_the_list_is_a_failure() -> None:
    claim = claimed(convolution((1, 6, 6, 16), 16, 3))
    assert isinstance(CudnnImplementer().build(claim, {"algorithm": 99}, "mine"), Failure)


@needs_a_compiler
def test_two_convolutions_in_one_library_share_a_handle(tmp_path: Path) -> None:
    objects = []
    for name, channels in (("first", 16), ("second", 32)):
        code = CudnnImplementer().build(
            claimed(convolution((1, 6, 6, channels), 16, 3)), {"algorithm": 0}, name
        )
        assert isinstance(code, bytes), code
        (tmp_path / f"{name}.o").write_bytes(code)
        objects.append(str(tmp_path / f"{name}.o"))
    made = str(tmp_path / "it.so")
    subprocess.run(["cc", "-shared", "-o", made, *objects, "-ldl"], check=True)
    names = subprocess.run(["nm", made], check=True, capture_output=True, text=True).stdout
    assert names.count("tuneloom_cudnn_handle") == 1


@needs_a_compiler
def test_the_function_enters_a_tvm_module() -> None:
    tvm = load_tvm()
    made = CudnnImplementer().insert(
        claimed(convolution((1, 6, 6, 16), 16, 3, residual=True)), {"algorithm": 0}, "mine"
    )
    assert not isinstance(made, Failure)
    assert [module.kind for module in made.modules] == ["static_library"]
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90"}, host="llvm")
    built = tvm.compile(
        tvm.IRModule({"main": made.function.with_attr("global_symbol", "main")}), target=target
    )
    assert "@mine(" in str(built.mod.inspect_source())
