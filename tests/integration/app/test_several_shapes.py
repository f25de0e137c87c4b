"""One bundle for several shapes: tuned as one job, run with whatever fits."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

from support.commands import Workplace
from support.models.onnx_files import network_inputs, onnx_answer, write_network
from support.warm import WarmInterpreter
from tuneloom.errors import InputError
from tuneloom.tuners.tvm.bundles.loading import load_bundle
from tuneloom.tuners.tvm.runner.weights import stored_parameters

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, warm: WarmInterpreter) -> Workplace:
    """A network with an open batch, tuned for one and for four images."""
    place = Workplace(folder=tmp_path_factory.mktemp("shapes"), warm=warm)
    write_network(place.folder / "net.onnx", batch="images")
    words = ("--shape", "x=1|4,8,8,8", "--pad", "--trials", "4", "--batch", "2", "--out", "fast", "--json")
    done = place.run("tune", "net.onnx", *words)
    assert done.returncode == 0, done.stderr
    (place.folder / "printed.json").write_text(done.stdout)
    return place


def test_the_result_and_the_manifest_name_all_shapes(place: Workplace) -> None:
    (job,) = json.loads((place.folder / "printed.json").read_text())["jobs"]
    assert len(job["result"]["by_shape"]) == 2
    manifest = json.loads((place.folder / "fast/bundle.json").read_text())
    assert manifest["format"] == 3 and manifest["pad"]
    assert manifest["inputs"][0]["shape"] == [1, 8, 8, 8]
    assert [one["inputs"][0]["shape"] for one in manifest["shapes"]] == [[4, 8, 8, 8]]


def test_weights_that_shapes_have_in_common_are_there_once(place: Workplace) -> None:
    assert len(stored_parameters(place.folder / "fast")) > 0
    assert stored_parameters(place.folder / "fast/shapes_1") == {}


@pytest.mark.parametrize("count", [1, 3, 4])
def test_a_bundle_runs_each_number_of_images_it_holds(place: Workplace, count: int) -> None:
    (got,) = load_bundle(place.folder / "fast").run(network_inputs(count))
    np.testing.assert_allclose(
        got, onnx_answer(place.folder / "net.onnx", x=network_inputs(count)), rtol=1e-4, atol=1e-5
    )


def test_more_than_fits_is_refused_by_name(place: Workplace) -> None:
    with pytest.raises(InputError, match=r"input 'x' must fit into one of the shapes .*\(4, 8, 8, 8\)"):
        load_bundle(place.folder / "fast").run(network_inputs(5))


def test_the_runner_in_the_bundle_does_the_same(place: Workplace) -> None:
    program = runpy.run_path(str(place.folder / "fast/run.py"))
    model = program["Model"](Path(place.folder / "fast"))
    for count in (1, 3, 4):
        (got,) = model.run([network_inputs(count)])
        np.testing.assert_allclose(
            got, onnx_answer(place.folder / "net.onnx", x=network_inputs(count)), rtol=1e-4, atol=1e-5
        )
    with pytest.raises(program["Refused"], match=r"takes x \(1, 8, 8, 8\) or x \(4, 8, 8, 8\), got \(5,"):
        model.run([network_inputs(5)])
