"""One bundle for a range of sizes: programs for a few of them run all."""

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.commands import Workplace
from support.models.onnx_files import network_inputs, onnx_answer, write_attention, write_network
from support.warm import WarmInterpreter
from tuneloom import InferenceSession
from tuneloom.errors import InputError, InvalidArgument
from tuneloom.tuners.tvm.bundles.loading import load_bundle
from tuneloom.tuners.tvm.bundles.one_file import pack
from tuneloom.tuners.tvm.runner.weights import stored_parameters

pytest.importorskip("onnxruntime")
BUDGET = ("--trials", "4", "--batch", "2")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, warm: WarmInterpreter) -> Workplace:
    """A network with an open batch, tuned for batches of 1 to 6, as a folder and as a file that never ran."""
    place = Workplace(folder=tmp_path_factory.mktemp("sizes"), warm=warm)
    write_network(place.folder / "net.onnx", batch="images")
    done = place.run("tune", "net.onnx", "--shape", "x=1..6,8,8,8", *BUDGET, "--out", "fast", "--json")
    assert done.returncode == 0, done.stderr
    pack(place.folder / "fast", place.folder / "logged.tlb")
    (place.folder / "printed.json").write_text(done.stdout)
    return place


def require_right(place: Workplace, run: Callable[[Any], Any], count: int) -> None:
    want = onnx_answer(place.folder / "net.onnx", x=network_inputs(count))
    np.testing.assert_allclose(run(network_inputs(count))[0], want, rtol=1e-4, atol=1e-5)


def sizes_of(place: Workplace) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((place.folder / "fast/bundle.json").read_text())["sizes"]
    return found


def test_the_manifest_says_which_programs_run_each_size(place: Workplace) -> None:
    sizes = sizes_of(place)
    assert (sizes["low"], sizes["high"], sizes["inputs"]) == (1, 6, {"x": [0]})
    assert sizes["pads"] and sizes["splits"]
    assert len(sizes["table"]) == 6 and len(sizes["seconds"]) == len(sizes["programs"]) >= 2
    (job,) = json.loads((place.folder / "printed.json").read_text())["jobs"]
    assert job["result"]["sizes"] == sizes["programs"]


def test_weights_are_there_once_for_all_sizes(place: Workplace) -> None:
    assert len(stored_parameters(place.folder / "fast")) > 0
    for number in range(1, len(sizes_of(place)["programs"])):
        assert stored_parameters(place.folder / f"fast/shapes_{number}") == {}


def test_a_bundle_runs_every_size_of_its_range(place: Workplace) -> None:
    bundle = load_bundle(place.folder / "fast")
    for count in range(1, 7):
        require_right(place, bundle.run, count)


def test_the_runner_in_the_bundle_does_the_same(place: Workplace) -> None:
    model = runpy.run_path(str(place.folder / "fast/run.py"))["Model"](Path(place.folder / "fast"))
    for count in (1, 4, 5):
        require_right(place, lambda value: model.run([value]), count)


def test_a_session_shows_which_dimension_varies(place: Workplace) -> None:
    session = InferenceSession(place.folder / "fast")
    assert session.get_inputs()[0].shape == [None, 8, 8, 8]
    assert session.get_outputs()[0].shape == [None, 16, 8, 8]
    require_right(place, lambda value: session.run(None, {"x": value}), 5)
    with pytest.raises(InvalidArgument, match="dimension 0 of x must be 1 to 6, got 7"):
        session.run(None, {"x": network_inputs(7)})


def test_a_size_out_of_range_is_refused_by_its_dimension(place: Workplace) -> None:
    with pytest.raises(InputError, match="dimension 0 of x must be 1 to 6, got 7"):
        load_bundle(place.folder / "fast").run(network_inputs(7))


def test_sizes_that_were_asked_for_are_tuned_next(place: Workplace) -> None:
    unasked = place.run("tune", "--from-log", "logged.tlb", *BUDGET, "--out", "again")
    assert unasked.returncode == 2 and "logged.tlb has no log of sizes yet; run it first" in unasked.stderr
    np.save(place.folder / "x.npy", network_inputs(5))
    for _ in range(3):
        done = place.run("run", "logged.tlb", "--input", "x.npy", "--output", "y.npy")
        assert done.returncode == 0, done.stderr
    done = place.run("tune", "--from-log", "logged.tlb", *BUDGET, "--out", "again", "--json")
    assert done.returncode == 0, done.stderr
    manifest = json.loads((place.folder / "again/bundle.json").read_text())
    assert manifest["sizes"]["programs"] == [6, 5]  # the greatest size is always there
    require_right(place, load_bundle(place.folder / "again").run, 6)


def test_a_bundle_with_fixed_shapes_has_no_log(place: Workplace) -> None:
    manifest = json.loads((place.folder / "fast/bundle.json").read_text())
    del manifest["sizes"]
    (place.folder / "fixed").mkdir()
    (place.folder / "fixed/bundle.json").write_text(json.dumps(manifest))
    done = place.run("tune", "--from-log", "fixed", *BUDGET, "--out", "never")
    assert done.returncode == 2 and "fixed has fixed shapes; --from-log is for bundles" in done.stderr


def test_a_length_is_padded_if_a_mask_hides_the_end(place: Workplace) -> None:
    path = write_attention(place.folder / "masked.onnx", masked=True)
    words = ("--shape", "x=1,2..12,8", *BUDGET, "--out", "masked")
    done = place.run("tune", "masked.onnx", *words)
    assert done.returncode == 0, done.stderr
    sizes = json.loads((place.folder / "masked/bundle.json").read_text())["sizes"]
    assert sizes["pads"] and not sizes["splits"]
    assert sizes["inputs"] == {"x": [1], "mask": [1]}
    bundle = load_bundle(place.folder / "masked")
    for length in (2, 5, 11, 12):
        x = np.random.default_rng(length).normal(size=(1, length, 8)).astype("float32")
        mask = np.ones((1, length), "float32")
        np.testing.assert_allclose(
            bundle.run(x, mask)[0], onnx_answer(path, x=x, mask=mask), rtol=1e-3, atol=1e-5
        )


def test_a_length_that_zeros_would_change_has_a_program_for_each_size(place: Workplace) -> None:
    path = write_attention(place.folder / "open.onnx", masked=False)
    done = place.run("tune", "open.onnx", "--shape", "x=1,2..3,8", *BUDGET, "--out", "open")
    assert done.returncode == 0, done.stderr
    sizes = json.loads((place.folder / "open/bundle.json").read_text())["sizes"]
    assert not sizes["pads"] and sizes["programs"] == [3, 2]
    bundle = load_bundle(place.folder / "open")
    for length in (2, 3):
        x = np.random.default_rng(length).normal(size=(1, length, 8)).astype("float32")
        np.testing.assert_allclose(bundle.run(x)[0], onnx_answer(path, x=x), rtol=1e-3, atol=1e-5)


def test_a_long_range_that_zeros_would_change_is_refused_in_one_line(place: Workplace) -> None:
    write_attention(place.folder / "open.onnx", masked=False)
    done = place.run("tune", "open.onnx", "--shape", "x=1,2..40,8", *BUDGET, "--out", "long")
    assert done.returncode == 2
    assert "zeros after the end of its inputs change its outputs, so each of the 39 sizes" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
