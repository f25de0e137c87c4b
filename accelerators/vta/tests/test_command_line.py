"""`tuneloom tune NETWORK --target vta --dtype int8`, as users type it."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from support.commands import Workplace
from tuneloom.backends.finding import backend_of
from tuneloom.backends.resolving import resolve_target

PACKAGE = Path(__file__).parent.parent
COUNTED = ("cycles", "load busy", "compute busy", "store busy")
INT8 = ("--dtype", "int8", "--samples", "small.npz", "--tolerance", "0.5")


@pytest.fixture
def place(tmp_path: Path, site: Path, network: Path) -> Workplace:
    """A folder with the network, and the package installed."""
    for file in network.iterdir():
        shutil.copy(file, tmp_path)
    path = os.pathsep.join([str(site), str(PACKAGE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return Workplace(folder=tmp_path, environment={"PYTHONPATH": path})


def tune(place: Workplace, *words: str) -> None:
    done = place.run("tune", "small.onnx", *INT8, *words)
    assert done.returncode == 0, done.stderr


def test_a_network_is_tuned_and_computes_what_int8_on_the_cpu_does(place: Workplace) -> None:
    tune(place, "--target", "vta", "--trials", "60", "--out", "fast")
    assert place.run("report", "last", "-o", "page.html").returncode == 0
    page = (place.folder / "page.html").read_text()
    counters = page[page.index("<h2>Device counters</h2>") :]
    assert all(f">{name}</button>" in counters for name in COUNTED)
    failures = page[page.index("<h2>Failures</h2>") :]
    assert "build error</td>" in failures[: failures.index("</table>")]
    assert "<h2>What the search chose</h2>" in page and "TF32" not in page
    if "int8" not in backend_of(resolve_target("cpu")).dtypes(resolve_target("cpu")):
        pytest.skip("this CPU has no int8 to compare with")
    tune(place, "--target", "cpu", "--trials", "0", "--only-tvm", "--out", "plain")
    outputs = {}
    for bundle in ("fast", "plain"):
        ran = place.run("run", bundle, "--input", "x.npy", "--output", f"{bundle}.npy")
        assert ran.returncode == 0, ran.stderr
        outputs[bundle] = np.load(place.folder / f"{bundle}.npy")
    np.testing.assert_array_equal(outputs["fast"], outputs["plain"])


CONTRADICTING = json.dumps({"kind": "vta", "inp_bytes": 1000})


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ("small.onnx", "--target", CONTRADICTING, *INT8),
            "vta: inp_bytes=1000 is not a power of two of elements of 16 bytes",
        ),
        (("small.onnx", "--target", "vta"), "vta computes in int8, not in float32; give --dtype int8"),
        (("other.onnx", "--target", "vta", *INT8), "other.onnx: nothing in it runs on vta"),
    ],
    ids=["sizes that contradict each other", "another type", "nothing that it can run"],
)
def test_bad_input_gets_one_line(place: Workplace, words: tuple[str, ...], error: str) -> None:
    _dilated(place.folder / "other.onnx")
    done = place.run("tune", *words, "--trials", "4")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("tuneloom: ") and error in line


def _dilated(path: Path) -> None:
    """A network with one convolution, of a kind that the accelerator does not compute."""
    import onnx
    from onnx import helper, numpy_helper

    weight = np.random.default_rng(0).standard_normal((32, 3, 3, 3)).astype(np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], pads=[2, 2, 2, 2], dilations=[2, 2]),
        helper.make_node("Conv", ["a", "v"], ["y"], pads=[2, 2, 2, 2], dilations=[2, 2]),
    ]
    wide = np.random.default_rng(1).standard_normal((32, 32, 3, 3)).astype(np.float32)
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 14, 14])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 32, 14, 14])
    weights = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(wide, "v")]
    graph = helper.make_graph(nodes, "other", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(path))
