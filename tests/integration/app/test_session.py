"""The short way in for Python."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.models.onnx_files import network_input, write_network
from support.models.tflite_files import write_tflite
from tuneloom import Session
from tuneloom.errors import BundleError, InputError, ModelError, OrderError, OutputError
from tuneloom.store import open_store


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path / "home"))


def test_from_a_file_to_a_saved_bundle_in_one_line_and_back(tmp_path: Path) -> None:
    model = write_network(tmp_path / "net.onnx")
    session = Session(target="cpu")
    timed = session.from_model(model).autotune(trials=6, seed=3).build().save(tmp_path / "out").evaluate(0.1)
    assert timed["median_s"] > 0
    assert set(session.times_s) == {"from_model", "autotune", "build", "save", "evaluate"}
    assert session.run_id is not None and session.result["trials"] == 6
    store = open_store()
    assert set(store.notes(session.run_id)["session"]) == set(session.times_s)
    store.close()
    again = Session.load(tmp_path / "out")
    output = again.run(network_input())
    assert output.shape == (1, 16, 8, 8)
    np.testing.assert_array_equal(output, session.run(network_input()))
    with pytest.raises(InputError, match="must have the shape"):
        again.run(np.zeros((1, 8, 9, 9), dtype="float32"))
    with pytest.raises(InputError, match="takes 1 inputs"):
        again.run()
    with pytest.raises(OutputError, match="not empty"):
        session.save(tmp_path / "out")


@pytest.mark.parametrize(
    ("step", "first"),
    [
        (lambda s: s.autotune(trials=4), "from_model"),
        (lambda s: s.build(), "from_model"),
        (lambda s: s.save("out"), "build"),
        (lambda s: s.run(np.zeros(1)), "build"),
        (lambda s: s.evaluate(), "build"),
    ],
)
def test_a_step_before_the_one_it_needs_says_what_to_call_first(step: Any, first: str) -> None:
    with pytest.raises(OrderError, match=f"call {first}"):
        step(Session())


def test_things_that_are_no_model_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        Session().from_model(tmp_path / "missing.onnx")
    with pytest.raises(ModelError, match="known:"):
        Session().from_model("zoo:unicorn")
    with pytest.raises(BundleError, match="not a bundle"):
        Session.load(tmp_path)


def test_a_tensorflow_lite_file_is_tuned(tmp_path: Path) -> None:
    expected = write_tflite(tmp_path / "net.tflite")
    session = Session().from_model(tmp_path / "net.tflite").autotune(trials=6).build()
    assert session.result["trials"] == 6
    x = np.random.default_rng(1).normal(size=(1, 8, 8, 4)).astype("float32")
    np.testing.assert_allclose(session.run(x), expected(x), rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(find_spec("torch") is not None, reason="torch is installed")
def test_a_torch_module_without_torch_says_what_to_install() -> None:
    with pytest.raises(InputError, match=r"pip install 'tuneloom\[torch\]'"):
        Session().from_model(object(), [1])


@pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed")
def test_a_torch_module_is_tuned(tmp_path: Path) -> None:
    import torch

    module = torch.nn.Sequential(torch.nn.Conv2d(8, 16, 1), torch.nn.ReLU())
    session = Session().from_model(module, [torch.from_numpy(network_input())]).autotune(trials=4).build()
    with torch.no_grad():
        expected = module(torch.from_numpy(network_input())).numpy()
    np.testing.assert_allclose(session.run(network_input()), expected, rtol=1e-4, atol=1e-5)
