"""Triton's templates without a GPU: outputs by Triton's interpreter, machine code for two architectures."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.kernels.cases import (
    CASES,
    TF32_TOLERANCE,
    TOLERANCES,
    attention,
    product_with_gelu,
    recurrent,
)
from tuneloom.backends.cuda.code import DeviceCode
from tuneloom.backends.cuda.triton.implementer import TEMPLATES, TritonImplementer, triton_claim

pytest.importorskip("triton", reason="the extra triton is not installed")
pytestmark = pytest.mark.integration

COMPILED = {
    "sm_80": (
        *("product with GELU", "product of one row", "causal attention", "convolution"),
        *("depthwise convolution", "transposed convolution", "LSTM", "largest of many"),
        *("softmax", "joined parts"),
    ),
    "sm_90": (
        *("batched product", "product of one row", "written out attention", "product in 8 bits"),
        *("largest of a window", "transposed with overlap", "GRU backwards", "LSTM both ways"),
        *("mean of all pixels", "layer norm", "elementwise chain"),
    ),
}
"""At least one kernel of each template for each architecture."""


@pytest.fixture(scope="module")
def differences() -> dict[str, list[float]]:
    """How far every case is off, from one process with the interpreter."""
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "support.kernels.interpreted"]
    asked = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert asked.returncode == 0, asked.stderr[-2000:]
    found: dict[str, list[float]] = json.loads(asked.stdout)
    return found


@pytest.mark.parametrize("name", CASES)
def test_the_interpreter_agrees_with_numpy(name: str, differences: dict[str, list[float]]) -> None:
    meaning = CASES[name][1]()
    allowed = [TOLERANCES[meaning.type_of(each).dtype] for each in meaning.outputs]
    if any(step.attributes.get("precision") == "tf32" for step in meaning.steps):
        allowed = [TF32_TOLERANCE] * len(allowed)
    assert all(off <= most for off, most in zip(differences[name], allowed, strict=True)), differences[name]


@pytest.mark.parametrize("arch", COMPILED)
def test_each_template_is_compiled_for_each_architecture(arch: str) -> None:
    assert {CASES[name][0] for name in COMPILED[arch]} == {template.name for template in TEMPLATES}


@pytest.mark.parametrize(
    ("arch", "name"), [(arch, name) for arch, names in COMPILED.items() for name in names]
)
def test_templates_compile_without_a_gpu(
    arch: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    meaning, implementer = CASES[name][1](), TritonImplementer()
    claim = triton_claim(meaning, {"kind": "cuda", "arch": arch})
    assert claim is not None
    code = implementer.build(claim, claim.space.guesses[0])
    assert isinstance(code, DeviceCode), code
    for launch in code.launches:
        pointers = (
            len(meaning.inputs) + len(meaning.outputs) + len(claim.program(claim.space.guesses[0]).scratch)
        )
        assert launch.cubin.startswith(b"\x7fELF") and launch.symbol.encode() in launch.cubin
        assert [each.role for each in launch.arguments[pointers:]] == ["null", "null"]


def test_a_split_product_has_two_kernels_and_scratch_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    implementer = TritonImplementer()
    claim = triton_claim(product_with_gelu(16, 128, 512), {"kind": "cuda", "arch": "sm_90"})
    assert claim is not None
    chosen = next(each for each in claim.space.everything() if each["split"] == 2 and not claim.refusal(each))
    code = implementer.build(claim, chosen)
    assert isinstance(code, DeviceCode)
    assert len(code.launches) == 2 and code.scratch[0].shape == (2, 1, 16, 128)


def test_a_recurrent_layer_of_several_blocks_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    claim = triton_claim(recurrent("lstm", 5, 2, 64, 32), {"kind": "cuda", "arch": "sm_90"})
    assert claim is not None
    code = TritonImplementer().build(claim, {"units": 16, "warps": 4})
    assert isinstance(code, DeviceCode)
    assert [each.grid for each in code.launches] == [(1, 1, 1), (4, 2, 1)]
    assert claim.refusal({"units": 8, "warps": 16}) == ""
    large = triton_claim(recurrent("lstm", 5, 16, 256, 32), {"kind": "cuda", "arch": "sm_90"})
    assert large is not None and "do not run side by side" in large.refusal({"units": 8, "warps": 4})


def test_descriptors_bring_scratch_memory_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    implementer = TritonImplementer()
    claim = triton_claim(product_with_gelu(128, 128, 128), {"kind": "cuda", "arch": "sm_90"})
    assert claim is not None
    code = implementer.build(claim, {**claim.space.guesses[0], "descriptors": 1})
    assert isinstance(code, DeviceCode)
    roles = [each.role for each in code.launches[0].arguments[-2:]]
    assert roles == ["scratch", "null"] and code.scratch[-1].dtype == "uint8"


def test_a_thread_of_attention_computes_one_exponential_a_score_and_one_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    claim = triton_claim(attention(128, 128, 1, 16), {"kind": "cuda", "arch": "sm_90"})
    assert claim is not None
    tile, threads, rows = 64, 128, 2
    chosen = {**claim.space.guesses[0], "tile_m": tile, "tile_n": tile, "warps": threads // 32, "split": 1}
    assert isinstance(TritonImplementer().build(claim, chosen), DeviceCode)
    (text,) = tmp_path.rglob("*.ptx")
    assert text.read_text().count("ex2.approx") <= tile * tile // threads + 2 * rows
