"""Cases of ONNX Runtime's `onnxruntime_test_python.py`, under its names, for what our sessions offer.

Every case runs in ONNX Runtime, too. Models are made here: X times a constant, X by a matrix, and so on.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tuneloom
from tuneloom import Session

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
SQUARES, PRODUCT = X * X, np.array([[5], [11], [17]], np.float32)
Open = Callable[..., Any]


def model(
    op: str, inputs: dict[str, list[Any]], shape: list[Any], other: Any = None, kind: int = TensorProto.FLOAT
) -> onnx.ModelProto:
    names = [*inputs, *(["W"] if other is not None else [])]
    graph = helper.make_graph(
        [helper.make_node(op, names, ["Y"])],
        "cases",
        [helper.make_tensor_value_info(name, kind, sizes) for name, sizes in inputs.items()],
        [helper.make_tensor_value_info("Y", kind, shape)],
        [numpy_helper.from_array(other, "W")] if other is not None else [],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MATRIX = np.array([[1], [2]], np.float32)
MODELS = {
    "mul_1": model("Mul", {"X": [3, 2]}, [3, 2], X),
    "matmul_1": model("MatMul", {"X": [3, 2]}, [3, 1], MATRIX),
    "matmul_2": model("MatMul", {"X": ["None", 2]}, ["None", 1], MATRIX),
    "logicaland": model("And", {"input1:0": [2, 2], "input:0": [2, 2]}, [2, 2], None, TensorProto.BOOL),
}
SHAPES: dict[str, dict[str, Any]] = {"matmul_2": {"X": ["1..8", 2]}}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every model, and its bundle as one file."""
    folder = tmp_path_factory.mktemp("cases")
    for name, made in MODELS.items():
        onnx.save(made, folder / f"{name}.onnx")
        session = Session(store=str(folder / "store.db"))
        session.from_model(folder / f"{name}.onnx", shapes=SHAPES.get(name))
        session.autotune(trials=1, only_tvm=True).build().save(folder / f"{name}.tlb")
    return folder


@pytest.fixture(params=["onnxruntime", "tuneloom"])
def library(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def file(models: Path, library: str) -> Callable[[str], Path]:
    """What the library loads for a model."""
    return lambda name: models / f"{name}.{'onnx' if library == 'onnxruntime' else 'tlb'}"


@pytest.fixture
def opened(file: Callable[[str], Path], library: str) -> Open:
    """A session for a model."""
    kind = onnxruntime.InferenceSession if library == "onnxruntime" else tuneloom.InferenceSession
    return lambda name, *rest, **options: kind(
        str(file(name)) if isinstance(name, str) else name,
        *rest,
        providers=["CPUExecutionProvider"],
        **options,
    )


def test_get_providers(opened: Open) -> None:
    assert "CPUExecutionProvider" in opened("mul_1").get_providers()
    assert "CPUExecutionProvider" in opened("mul_1").get_provider_options()


def test_session_providers(opened: Open) -> None:
    assert opened("mul_1").get_providers() == ["CPUExecutionProvider"]


def test_deserialization_from_path_object(opened: Open, file: Callable[[str], Path]) -> None:
    np.testing.assert_allclose(opened(file("mul_1")).run(None, {"X": X})[0], SQUARES)


def check_one_input_and_output(session: Any, shape: list[Any]) -> None:
    (x,), (y,) = session.get_inputs(), session.get_outputs()
    assert (x.name, x.type, y.name, y.type) == ("X", "tensor(float)", "Y", "tensor(float)")
    assert (x.shape[1:], y.shape) == ([2], shape)


def test_run_model(opened: Open) -> None:
    session = opened("mul_1")
    check_one_input_and_output(session, [3, 2])
    np.testing.assert_allclose(session.run(["Y"], {"X": X})[0], SQUARES, rtol=1e-5)


def test_run_model_from_bytes(opened: Open, file: Callable[[str], Path]) -> None:
    session = opened(file("mul_1").read_bytes())
    check_one_input_and_output(session, [3, 2])
    np.testing.assert_allclose(session.run(["Y"], {"X": X})[0], SQUARES, rtol=1e-5)
    with pytest.raises(Exception, match=r".") as caught:
        opened(b"no model")
    assert "\n" not in str(caught.value)


def test_run_model2(opened: Open) -> None:
    session = opened("matmul_1")
    check_one_input_and_output(session, [3, 1])
    np.testing.assert_allclose(session.run(["Y"], {"X": X})[0], PRODUCT, rtol=1e-5)


def test_run_model2_contiguous(opened: Open) -> None:
    session, turned = opened("matmul_1"), X[:, ::-1].copy()[:, [1, 0]]
    assert not turned.flags.c_contiguous
    for x in (turned, np.ascontiguousarray(turned)):
        np.testing.assert_allclose(session.run(["Y"], {"X": x})[0], PRODUCT, rtol=1e-5)


def test_run_model_symbolic_input(opened: Open, library: str) -> None:
    session = opened("matmul_2")
    check_one_input_and_output(session, ["None" if library == "onnxruntime" else None, 1])
    for count in (3, 2):
        np.testing.assert_allclose(session.run(["Y"], {"X": X[:count]})[0], PRODUCT[:count], rtol=1e-5)


def test_run_model_multiple_threads(opened: Open) -> None:
    session, found = opened("mul_1", onnxruntime.SessionOptions()), []

    def run() -> None:
        for _ in range(20):
            found.append(session.run([], {"X": X}, run_options=onnxruntime.RunOptions())[0])

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 80 and all(np.array_equal(one, SQUARES) for one in found)


def test_run_async(opened: Open) -> None:
    told: list[Any] = []
    done, data = threading.Event(), object()

    def called(found: Any, own: Any, error: str) -> None:
        told.extend((list(found), own, error))
        done.set()

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = opened("mul_1", options)
    session.run_async(["Y"], {"X": X}, called, data)
    assert done.wait(30)
    (found,), own, error = told
    np.testing.assert_allclose(found, SQUARES)
    assert own is data and error == ""


def test_list_as_input(opened: Open) -> None:
    np.testing.assert_allclose(opened("mul_1").run([], {"X": X.tolist()})[0], SQUARES)


def test_boolean_inputs(opened: Open) -> None:
    session = opened("logicaland")
    a, b = np.array([[True, True], [False, False]]), np.array([[True, False], [True, False]])
    described = [(one.name, one.shape, one.type) for one in session.get_inputs()]
    assert described == [("input1:0", [2, 2], "tensor(bool)"), ("input:0", [2, 2], "tensor(bool)")]
    (y,) = session.get_outputs()
    assert (y.shape, y.type) == ([2, 2], "tensor(bool)")
    np.testing.assert_array_equal(session.run(["Y"], {"input1:0": a, "input:0": b})[0], a & b)


def test_session_with_ortvalue_input(opened: Open) -> None:
    value = onnxruntime.OrtValue.ortvalue_from_numpy(X)
    np.testing.assert_allclose(opened("mul_1").run(["Y"], {"X": value})[0], SQUARES)
