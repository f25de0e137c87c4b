"""TensorFlow Lite models: what TVM makes of them, and what is said about bad ones."""

import sys
from pathlib import Path

import numpy as np
import pytest

from support.models.tflite_files import (
    write_derived_tflite,
    write_hashing_tflite,
    write_spectral_tflite,
    write_tflite,
    write_unknown_tflite,
)
from support.models.tflite_graphs import branched, write_branching_tflite, write_lookup_tflite
from tuneloom.compiler.target import TargetSpec
from tuneloom.errors import ModelError
from tuneloom.tuners.tvm.importing.sources import import_model
from tuneloom.tuners.tvm.lowering.graph import lower
from tuneloom.tuners.tvm.lowering.tasks import extract
from tuneloom.tuners.tvm.models.compiling.building import build_model
from tuneloom.tuners.tvm.models.compiling.compiled import load_compiled
from tuneloom.tuners.tvm.models.rivals.runtimes import open_rival


@pytest.mark.parametrize("batch", [1, 3])
def test_an_imported_model_computes_what_its_file_says(tmp_path: Path, host: TargetSpec, batch: int) -> None:
    path = tmp_path / "net.tflite"
    expected = write_tflite(path, open_batch=True)
    model = import_model(str(path), {"x": (batch, 8, 8, 4)})
    assert [(info.name, info.shape) for info in model.inputs] == [("x", (batch, 8, 8, 4))]
    assert [(info.name, info.shape) for info in model.outputs] == [("y", (batch, 5))]
    lowered = lower(model, host)
    assert any("conv2d" in task.name for task in extract(lowered))
    x = np.random.default_rng(1).normal(size=(batch, 8, 8, 4)).astype("float32")
    (y,) = build_model(lowered, {}).open().run([x])
    np.testing.assert_allclose(y, expected(x), rtol=1e-4, atol=1e-4)


def test_an_unknown_operator_is_named_with_its_output(tmp_path: Path) -> None:
    path = write_unknown_tflite(tmp_path / "odd.tflite")
    with pytest.raises(ModelError, match=r"operator LSH_PROJECTION \(with output 'hashed'\)"):
        import_model(str(path), only_tvm=True)


def test_a_custom_operator_is_named_as_its_maker_did(tmp_path: Path) -> None:
    path = write_unknown_tflite(tmp_path / "odd.tflite", custom="Landmarks2Matrix")
    with pytest.raises(ModelError, match=r"operator custom Landmarks2Matrix \(with output 'hashed'\)"):
        import_model(str(path), only_tvm=True)


def test_an_operator_tvm_lacks_runs_in_litert(tmp_path: Path, host: TargetSpec) -> None:
    pytest.importorskip("ai_edge_litert")
    path = str(write_hashing_tflite(tmp_path / "net.tflite"))
    model = import_model(path)
    assert [(part.runtime, part.operators) for part in model.foreign] == [("tflite", ("LSH_PROJECTION",))]
    assert any("LiteRT runs LSH_PROJECTION" in note for note in model.notes)
    compiled = build_model(lower(model, host), {})
    rival = open_rival("tflite", path, model.inputs, model.outputs, 1)
    compiled.export(tmp_path)
    parts = [{"function": p.function, "file": "part_0.tflite", "operators": []} for p in model.foreign]
    loaded = load_compiled(tmp_path, model.inputs, model.outputs, parts)
    for seed in (1, 2):
        x = np.random.default_rng(seed).normal(size=(2, 4)).astype("float32")
        for one in (compiled, loaded):
            np.testing.assert_allclose(one.open().run([x])[0], rival([x])[0], rtol=1e-4, atol=1e-4)


def test_what_neither_runs_is_said_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("ai_edge_litert")
    path = write_unknown_tflite(tmp_path / "odd.tflite", custom="Landmarks2Matrix")
    with pytest.raises(ModelError, match=r"neither TVM nor LiteRT runs custom Landmarks2Matrix: [^\n]+$"):
        import_model(str(path))


def test_weights_and_shapes_that_are_computed_in_the_graph_are_known_at_import(
    tmp_path: Path, host: TargetSpec
) -> None:
    expected = write_derived_tflite(tmp_path / "net.tflite")
    lowered = lower(import_model(str(tmp_path / "net.tflite")), host)
    x = np.random.default_rng(1).normal(size=(2, 3, 4)).astype("float32")
    (y,) = build_model(lowered, {}).open().run([x])
    np.testing.assert_allclose(y, expected(x), rtol=1e-4, atol=1e-4)


def test_a_signal_is_framed_and_transformed_although_the_file_does_not_know_how_many_frames_there_are(
    tmp_path: Path, host: TargetSpec
) -> None:
    expected = write_spectral_tflite(tmp_path / "net.tflite")
    lowered = lower(import_model(str(tmp_path / "net.tflite"), only_tvm=True), host)
    x = np.random.default_rng(1).normal(size=(1, 512)).astype("float32")
    (y,) = build_model(lowered, {}).open().run([x])
    np.testing.assert_allclose(y, expected(x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("turns", [0, 3])
def test_branches_and_loops_become_operators(tmp_path: Path, host: TargetSpec, turns: int, sign: int) -> None:
    write_branching_tflite(tmp_path / "net.tflite", turns)
    imported = import_model(str(tmp_path / "net.tflite"), only_tvm=True)
    x = np.array([[1, -2, 3, 4]], np.float32) * sign
    (got,) = build_model(lower(imported, host), {}).open().run([x])
    np.testing.assert_allclose(got, branched(x, turns), rtol=1e-6)


def test_a_loop_of_very_many_turns_is_refused_where_only_tvm_is_wanted(tmp_path: Path) -> None:
    write_branching_tflite(tmp_path / "net.tflite", 100_000)
    with pytest.raises(ModelError, match="a WHILE of more than 1024 turns"):
        import_model(str(tmp_path / "net.tflite"), only_tvm=True)


def test_rows_are_looked_up_and_one_that_is_not_there_ends_nothing(tmp_path: Path, host: TargetSpec) -> None:
    table = write_lookup_tflite(tmp_path / "net.tflite")
    model = build_model(lower(import_model(str(tmp_path / "net.tflite"), only_tvm=True), host), {}).open()
    (got,) = model.run([np.array([4, 0, 2], np.int32)])
    np.testing.assert_array_equal(got, table[[4, 0, 2]])
    (got,) = model.run([np.array([10**9, -(10**9), 2], np.int32)])
    np.testing.assert_array_equal(got, table[[4, 0, 2]])


def test_a_loop_whose_turns_depend_on_the_input_runs_in_litert(tmp_path: Path, host: TargetSpec) -> None:
    pytest.importorskip("ai_edge_litert")
    write_branching_tflite(tmp_path / "net.tflite", None)
    imported = import_model(str(tmp_path / "net.tflite"))
    assert [part.operators for part in imported.foreign] == [("WHILE",)]
    x = np.array([[1, -2, 3, 4]], np.float32)
    (got,) = build_model(lower(imported, host), {}).open().run([x])
    np.testing.assert_allclose(got, branched(x, None), rtol=1e-6)


def test_a_loop_whose_turns_depend_on_the_input_is_refused_where_only_tvm_is_wanted(tmp_path: Path) -> None:
    write_branching_tflite(tmp_path / "net.tflite", None)
    with pytest.raises(ModelError, match=r"WHILE whose number of turns depends on the inputs"):
        import_model(str(tmp_path / "net.tflite"), only_tvm=True)


def test_an_open_batch_is_one_with_a_note(tmp_path: Path) -> None:
    write_tflite(tmp_path / "net.tflite", open_batch=True)
    model = import_model(str(tmp_path / "net.tflite"))
    assert model.inputs[0].shape == (1, 8, 8, 4)
    assert "--shape x=1,8,8,4" in model.notes[0]


def test_shapes_that_fit_no_input_are_refused(tmp_path: Path) -> None:
    write_tflite(tmp_path / "net.tflite")
    with pytest.raises(ModelError, match=r"is \(1,8,8,4\); --shape x=2,8,8,4 does not fit"):
        import_model(str(tmp_path / "net.tflite"), {"x": (2, 8, 8, 4)})
    with pytest.raises(ModelError, match=r"no input 'image'.*inputs: x"):
        import_model(str(tmp_path / "net.tflite"), {"image": (1, 8, 8, 4)})


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_a_truncated_file_is_called_one(tmp_path: Path, share: float) -> None:
    path = tmp_path / "net.tflite"
    write_tflite(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ModelError, match="damaged or truncated"):
        import_model(str(path))


def test_a_text_file_is_called_no_model(tmp_path: Path) -> None:
    path = tmp_path / "letter.tflite"
    path.write_text("Dear reader")
    with pytest.raises(ModelError, match="not a TensorFlow Lite model"):
        import_model(str(path))


def test_without_its_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tflite(tmp_path / "net.tflite")
    monkeypatch.setitem(sys.modules, "tflite", None)
    with pytest.raises(ModelError, match=r"net\.tflite.*needs tflite.*pip install 'tuneloom\[tflite\]'"):
        import_model(str(tmp_path / "net.tflite"))
