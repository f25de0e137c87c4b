"""Models for GPUs that are not here: built from first guesses, with a word that nothing was measured."""

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, save

from support.commands import Workplace
from support.models.graphs import model_of
from support.models.onnx_files import write_network
from support.warm import WarmInterpreter
from tuneloom.gpus import visible_gpus

pytestmark = pytest.mark.integration
pytest.importorskip("triton", reason="the extra triton is not installed")
TARGET = '{"kind": "cuda", "arch": "sm_80"}'


@pytest.fixture
def place(tmp_path: Path, warm: WarmInterpreter) -> Workplace:
    if visible_gpus():
        pytest.skip("there is a GPU to measure on")
    write_network(tmp_path / "net.onnx")
    return Workplace(folder=tmp_path, warm=warm)


def write_reshaped(path: Path) -> None:
    """A product of rows that come in as a volume and go out as one."""
    nodes = [
        helper.make_node("Reshape", ["x", "flat"], ["rows"]),
        helper.make_node("MatMul", ["rows", "w"], ["products"]),
        helper.make_node("Relu", ["products"], ["positive"]),
        helper.make_node("Reshape", ["positive", "volume"], ["y"]),
    ]
    constants = {
        "w": np.ones((16, 32), "float32"),
        "flat": np.array([8, 16]),
        "volume": np.array([2, 4, 32]),
    }
    save(model_of(nodes, {"x": (2, 4, 16)}, {"y": (2, 4, 32)}, constants), path)


def test_a_bundle_for_a_named_architecture_is_made_of_first_guesses(place: Workplace) -> None:
    done = place.run("tune", "net.onnx", "--target", TARGET, "--out", "fast")
    assert done.returncode == 0, done.stderr
    assert "nothing was measured" in done.stdout
    manifest = json.loads((place.folder / "fast" / "bundle.json").read_text())
    assert json.loads(manifest["target"]["text"])["arch"] == "sm_80"
    assert manifest["implementers"] == ["triton"] and manifest["measured"] == {}
    assert {kernel["implementer"] for kernel in manifest["kernels"].values()} == {"triton"}
    used = json.loads((place.folder / "fast" / "schedules.json").read_text())
    assert {row["origin"] for row in used} == {"guess"} and len(used) == len(manifest["kernels"])
    assert (place.folder / "fast" / "model.so").stat().st_size > 0


def test_views_of_the_model_and_copies_at_its_end_need_no_compiler_for_the_gpu(place: Workplace) -> None:
    write_reshaped(place.folder / "views.onnx")
    done = place.run("tune", "views.onnx", "--target", TARGET, "--out", "fast")
    assert done.returncode == 0, done.stderr
    assert (place.folder / "fast" / "model.so").stat().st_size > 0


def test_a_job_that_neither_measures_nor_writes_is_refused_in_one_line(place: Workplace) -> None:
    done = place.run("tune", "net.onnx", "--device", "none")
    assert done.returncode != 0
    assert done.stderr == "tuneloom: net: nothing is measured without a device; add --out\n"
