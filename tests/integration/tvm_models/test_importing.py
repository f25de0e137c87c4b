"""Graphs TVM can't take are refused with the place and the remedy."""

import json
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto, helper

from tuneloom.backends.cpu.features import cpu_features_needed, missing_cpu_features
from tuneloom.backends.cpu.target import cpu_features_of
from tuneloom.backends.resolving import resolve_target
from tuneloom.compiler.target import host_cpu
from tuneloom.errors import ModelError, TargetError
from tuneloom.tuners.tvm.importing.sources import import_model


def saved(folder: Path, nodes: list[Any], shape: tuple[int | str, ...], domain: str = "") -> str:
    entry = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    opsets = [helper.make_opsetid("", 17)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    graph = helper.make_graph(nodes, "net", [entry], [result])
    path = folder / "net.onnx"
    path.write_bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())
    return str(path)


def test_unknown_operator_is_named_with_its_node(tmp_path: Path) -> None:
    node = helper.make_node("Frobnicate", ["x"], ["y"], name="layer7", domain="my.ops")
    with pytest.raises(ModelError, match=r"my\.ops\.Frobnicate \(node layer7\)"):
        import_model(saved(tmp_path, [node], (1, 4), "my.ops"))


def test_operator_tvm_lacks_is_named(tmp_path: Path) -> None:
    node = helper.make_node("StringNormalizer", ["x"], ["y"], name="words")
    with pytest.raises(ModelError, match=r"operator StringNormalizer \(node words\)"):
        import_model(saved(tmp_path, [node], (4,)))


def test_open_shape_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], ("batch", 3, -1, 8))
    with pytest.raises(ModelError, match=r"input 'x' .*\(batch,3,\?,8\).*--shape x=1,3,224,8"):
        import_model(path)
    assert import_model(path, {"x": (1, 3, 224, 8)}).outputs[0].shape == (1, 3, 224, 8)


def test_open_batch_is_one_with_a_note(tmp_path: Path) -> None:
    model = import_model(saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], (-1, 3, 8, 8)))
    assert model.inputs[0].shape == (1, 3, 8, 8)
    assert "the batch" in model.notes[0]


def test_bound_shape_is_used(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], ("batch", 3, 8, 8))
    model = import_model(path, {"x": (2, 3, 8, 8)})
    assert model.inputs[0].shape == (2, 3, 8, 8)
    assert model.outputs[0].shape == (2, 3, 8, 8)


def test_shape_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], ("batch", 3, 8, 8))
    with pytest.raises(ModelError, match="does not fit"):
        import_model(path, {"x": (2, 4, 8, 8)})


def test_shape_of_an_unknown_input_names_the_known(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], (1, 3))
    with pytest.raises(ModelError, match=r"no input 'image'.*inputs: x"):
        import_model(path, {"image": (1, 3)})


def test_digest_follows_content_and_shapes(tmp_path: Path) -> None:
    path = saved(tmp_path, [helper.make_node("Relu", ["x"], ["y"])], ("batch", 3))
    digests = {import_model(path, {"x": (size, 3)}).digest for size in (1, 2, 1)}
    assert len(digests) == 2


def test_host_is_recognised() -> None:
    target = resolve_target()
    assert target.kind == "llvm"
    assert target.mcpu == host_cpu()
    assert target.cores == 1
    assert target.lanes in (4, 8, 16)
    assert target.to_tvm().kind.name == "llvm"


def test_target_text_comes_back_as_the_same_target() -> None:
    target = resolve_target("llvm", cores=2)
    assert resolve_target(target.text) == target


def test_described_target_is_kept() -> None:
    intel = {"kind": "llvm", "mtriple": "x86_64-linux-gnu", "mcpu": "skylake-avx512", "num-cores": 4}
    target = resolve_target(json.dumps(intel))
    assert (target.mcpu, target.cores, target.vector_bits) == ("skylake-avx512", 4, 512)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tpu", "unknown target 'tpu'; known: 'cpu', 'cuda'"),
        ("vta", "pip install tuneloom-vta"),
        ('{"mcpu": "skylake"}', 'needs a "kind"'),
        ('{"kind": "llvm"', "not valid JSON"),
        ('{"kind": "llvm", "mcpu": "skylark"}', "no CPU 'skylark'"),
        ('{"kind": "tpu"}', "unknown target 'tpu'"),
        ('{"kind": "llvm", "cl-opt": "-x"}', "TVM does not accept"),
    ],
)
def test_bad_target_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(TargetError) as caught:
        resolve_target(text)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_host_has_what_code_for_it_needs() -> None:
    needed = cpu_features_needed(cpu_features_of(resolve_target().to_tvm()))
    assert needed
    assert missing_cpu_features(needed) == ()
