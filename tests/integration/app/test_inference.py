"""Bundles behind ONNX Runtime's interface and in C++, as a folder and as one file."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

import tuneloom
from support.models.onnx_files import network_input, write_network
from tuneloom import Session
from tuneloom.errors import BundleError, InvalidArgument, OutputError
from tuneloom.tuners.tvm.bundles.loading import load_bundle
from tuneloom.tuners.tvm.bundles.one_file import copy, opened
from tuneloom.tuners.tvm.runner.weights import ALIGNMENT, stored_parameters


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model and its bundle in both forms."""
    folder = tmp_path_factory.mktemp("bundles")
    write_network(folder / "net.onnx")
    session = Session(store=str(folder / "store.db"))
    session.from_model(folder / "net.onnx").autotune(trials=2, only_tvm=True).build()
    session.save(folder / "fast.tlb")
    copy(folder / "fast.tlb", folder / "fast")
    return folder


@pytest.mark.parametrize("name", ["fast", "fast.tlb"])
def test_a_bundle_answers_as_a_session_of_onnx_runtime(place: Path, name: str) -> None:
    theirs = onnxruntime.InferenceSession(str(place / "net.onnx"))
    ours = tuneloom.InferenceSession(place / name, providers=["CPUExecutionProvider"])
    for asked in ("get_inputs", "get_outputs"):
        described = [
            [(one.name, one.shape, one.type) for one in getattr(each, asked)()] for each in (ours, theirs)
        ]
        assert described[0] == described[1]
    assert ours.get_providers() == theirs.get_providers()
    feed = {ours.get_inputs()[0].name: network_input()}
    outputs = [one.name for one in ours.get_outputs()]
    for names in (None, [], outputs):
        for one, other in zip(ours.run(names, feed), theirs.run(names, feed), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
    as_lists = {name: value.tolist() for name, value in feed.items()}
    np.testing.assert_array_equal(ours.run(None, as_lists)[0], ours.run(None, feed)[0])


def test_bad_arrays_are_refused_in_the_words_of_onnx_runtime(place: Path) -> None:
    theirs = onnxruntime.InferenceSession(str(place / "net.onnx"))
    ours = tuneloom.InferenceSession(place / "fast")
    name, x = ours.get_inputs()[0].name, network_input()
    bad = {
        "Unexpected input data type. Actual: (tensor(double)) , expected: (tensor(float))": {
            name: x.astype("float64")
        },
        "Invalid rank for input: x Got: 2 Expected: 4": {name: x[0, 0]},
        "Got invalid dimensions for input: x for the following indices": {name: x[:, :4]},
        "Invalid input name: y": {name: x, "y": x},
    }
    for words, feed in bad.items():
        with pytest.raises(InvalidArgument) as caught:
            ours.run(None, feed)
        with pytest.raises(Exception) as known:
            theirs.run(None, feed)
        assert words in str(caught.value) and "\n" not in str(caught.value)
        assert words in str(known.value)
    for session in (ours, theirs):
        with pytest.raises(
            ValueError, match=r"Required inputs \(\['x'\]\) are missing from input feed \(\[\]\)"
        ):
            session.run(None, {})
        with pytest.raises(Exception, match="z"):
            session.run(["z"], {name: x})


def test_the_weights_of_a_file_are_mapped_where_they_are(place: Path) -> None:
    with zipfile.ZipFile(place / "fast.tlb") as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
    inside, folder = stored_parameters(opened(place / "fast.tlb")), stored_parameters(place / "fast")
    assert inside.keys() == folder.keys() and inside
    for name, value in inside.items():
        assert isinstance(value, np.memmap) and value.filename == str(place / "fast.tlb")
        np.testing.assert_array_equal(value, folder[name])
    largest = max(inside.values(), key=lambda value: value.nbytes)
    assert largest.ctypes.data % ALIGNMENT == 0
    x = network_input()
    file, own = load_bundle(place / "fast.tlb"), load_bundle(place / "fast")
    np.testing.assert_array_equal(file.run(x)[0], own.run(x)[0])


def test_a_session_saves_and_loads_one_file(place: Path, tmp_path: Path) -> None:
    again = Session.load(place / "fast").save(tmp_path / "own.tlb").save(tmp_path / "copy.tlb")
    assert (tmp_path / "own.tlb").read_bytes() == (tmp_path / "copy.tlb").read_bytes()
    np.testing.assert_array_equal(
        Session.load(tmp_path / "own.tlb").run(network_input()), again.run(network_input())
    )
    with pytest.raises(OutputError, match="is a file"):
        again.save(tmp_path / "own.tlb")


def test_a_file_that_is_no_bundle_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "odd.tlb").write_bytes(b"PK and nothing else")
    with pytest.raises(BundleError, match=r"odd\.tlb is not a bundle"):
        tuneloom.InferenceSession(tmp_path / "odd.tlb")
    with pytest.raises(BundleError, match="not a bundle"):
        tuneloom.InferenceSession(tmp_path)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C++ example, built."""
    folder, source = tmp_path_factory.mktemp("cpp"), Path(__file__).parents[3] / "examples" / "cpp"
    python = f"-DPython_EXECUTABLE={sys.executable}"
    found = shutil.which("cmake", path=f"{Path(sys.executable).parent}:/usr/bin:/usr/local/bin")
    assert found is not None, "cmake is among the packages for development"
    for words in (["-S", str(source), "-B", str(folder), python], ["--build", str(folder)]):
        subprocess.run([found, *words], check=True, capture_output=True, text=True)
    return folder / "run_bundle"


def test_a_program_in_c_answers_as_python_does(place: Path, program: Path, tmp_path: Path) -> None:
    network_input().tofile(tmp_path / "x.bin")
    files = [str(tmp_path / "x.bin"), str(tmp_path / "y.bin")]
    done = subprocess.run([program, place / "fast", *files], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    expected = tuneloom.InferenceSession(place / "fast").run(None, {"x": network_input()})[0]
    np.testing.assert_array_equal(np.fromfile(tmp_path / "y.bin", "float32"), expected.ravel())


def test_a_program_in_c_says_in_one_line_what_is_wrong(place: Path, program: Path, tmp_path: Path) -> None:
    manifest = json.loads((place / "fast" / "bundle.json").read_text())
    (tmp_path / "short.bin").write_bytes(bytes(10))
    changed = {
        "other": {"target": {**manifest["target"], "machine": "pdp11"}},
        "state": {"state": [{"input": "x", "output": "y"}]},
        "later": {"format": 4},
        "earlier": {"format": 2},
    }
    for name, change in changed.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "bundle.json").write_text(json.dumps({**manifest, **change}))
    short = [str(place / "fast"), str(tmp_path / "short.bin"), str(tmp_path / "y.bin")]
    bad = {
        "can't be read; give the folder of a bundle": [str(tmp_path)],
        "built for pdp11": [str(tmp_path / "other")],
        "the bundle has a state": [str(tmp_path / "state")],
        "the bundle has format 4, not 3; build this program with a later Tuneloom": [str(tmp_path / "later")],
        "the bundle has format 2, not 3; tune the model again": [str(tmp_path / "earlier")],
        "short.bin must have": short,
    }
    for reason, words in bad.items():
        done = subprocess.run([program, *words], capture_output=True, text=True)
        assert done.returncode == 2 and reason in done.stderr and done.stderr.count("\n") == 1
