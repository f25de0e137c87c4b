"""The simulator is compiled once for all tests; the package is registered as pip does it."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tuneloom_vta.simulator import library

POINTS = "[tuneloom.backends]\nvta = tuneloom_vta.backend.backend:BACKEND\n"
POINTS += "[tuneloom.devices]\nvta = tuneloom_vta.device:KIND\n"


@pytest.fixture(scope="session", autouse=True)
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if library.compiler() is None:
        pytest.skip("the VTA simulator needs a C compiler")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TUNELOOM_VTA_CACHE", str(tmp_path_factory.mktemp("simulator")))
        library.library.cache_clear()
        library.library()
        yield
    library.library.cache_clear()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for `sys.path` that registers the package as pip does."""
    folder = tmp_path_factory.mktemp("site")
    info = folder / "tuneloom_vta-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tuneloom-vta\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    return folder


@pytest.fixture(scope="session")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `small.onnx`, samples for it in `small.npz`, and an input in `x.npy`."""
    folder = tmp_path_factory.mktemp("network")
    random = np.random.default_rng(0)
    samples = random.standard_normal((4, 3, 14, 14)).astype(np.float32)
    _small_model(folder / "small.onnx", random)
    np.savez(folder / "small.npz", x=samples)
    np.save(folder / "x.npy", samples[:1] + np.float32(0.25))
    return folder


def _small_model(path: Path, random: np.random.Generator) -> None:
    """Write the network: a branch that is added, pooling, and a product at the end."""
    shapes = {
        "first": (32, 3, 3, 3),
        "second": (32, 32, 3, 3),
        "narrow": (48, 32, 1, 1),
        "wide": (48, 32, 3, 3),
        "last": (48, 40),
    }
    weights = [numpy_helper.from_array(_weight(shape, random), name) for name, shape in shapes.items()]
    nodes = [
        helper.make_node("Conv", ["x", "first"], ["a"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "second"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "narrow"], ["e"], strides=[2, 2]),
        helper.make_node("Conv", ["b", "wide"], ["f"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Add", ["e", "f"], ["g"]),
        helper.make_node("Relu", ["g"], ["h"]),
        helper.make_node("GlobalAveragePool", ["h"], ["i"]),
        helper.make_node("Flatten", ["i"], ["j"]),
        helper.make_node("MatMul", ["j", "last"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 3, 14, 14])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 40])
    graph = helper.make_graph(nodes, "small", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(path))


def _weight(
    shape: tuple[int, ...], random: np.random.Generator
) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    spread = np.sqrt(np.prod(shape[1:]))
    return np.asarray(random.standard_normal(shape) / spread, dtype=np.float32)
