"""Bundles that keep a state from one run to the next."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, checker, helper, save

import tuneloom
from support.models.tflite_graphs import SHAPE, write_summing_tflite
from tuneloom import Session
from tuneloom.errors import InputError, ModelError
from tuneloom.tuners.tvm.runner.model import Model

X = np.ones(SHAPE, "float32")


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path / "home"))


def write_decoder(path: Path) -> Path:
    """A product added to what the last run gave, and its positive part."""
    infos = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 4]), ("past", [1, 3]), ("present", [1, 3]), ("y", [1, 3]))
    ]
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 3], np.ones(12, "float32"))
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Add", ["product", "past"], ["present"]),
        helper.make_node("Relu", ["present"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "decoder", infos[:2], infos[2:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    checker.check_model(model)
    save(model, path)
    return path


def test_variables_of_a_file_are_kept_and_reset(tmp_path: Path) -> None:
    write_summing_tflite(tmp_path / "net.tflite", start=3.0)
    session = Session().from_model(tmp_path / "net.tflite").autotune(trials=2).build().save(tmp_path / "fast")
    for expected in (4, 5, 6):
        np.testing.assert_array_equal(session.run(X), np.full(SHAPE, expected))
    session.reset()
    np.testing.assert_array_equal(session.run(X), X + 3)
    with pytest.raises(InputError, match=r"takes 1 inputs \(x\), got 2"):
        session.run(X, X)
    own = tuneloom.InferenceSession(tmp_path / "fast")
    assert [one.name for one in own.get_inputs()] == ["x"]
    assert [one.name for one in own.get_outputs()] == ["total"]
    assert [own.run(None, {"x": X})[0][0, 0] for _ in range(3)] == [4, 5, 6]
    own.reset()
    assert own.run(["total"], {"x": X})[0][0, 0] == 4
    alone = Model(tmp_path / "fast")
    assert [alone.run([X])[0][0, 0] for _ in range(2)] == [4, 5]


def test_an_output_that_was_declared_becomes_the_next_input(tmp_path: Path) -> None:
    session = Session().from_model(write_decoder(tmp_path / "net.onnx"))
    session.autotune(trials=2, only_tvm=True, state="past=present").build()
    assert [session.run(X)[0, 0] for _ in range(3)] == [4, 8, 12]
    session.reset()
    assert session.run(X)[0, 0] == 4


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("past=next", "there is no output 'next'; outputs: present, y"),
        ("last=present", "there is no input 'last'; inputs: x, past"),
        ("x=present", r"'x' is float32 \(1, 4\), 'present' is float32 \(1, 3\)"),
        ("past", "there is no output ''.*--state INPUT=OUTPUT"),
    ],
)
def test_a_pair_that_is_none_is_refused_by_name(tmp_path: Path, state: str, words: str) -> None:
    session = Session().from_model(write_decoder(tmp_path / "net.onnx"))
    with pytest.raises(ModelError, match=words):
        session.autotune(trials=2, state=state)
