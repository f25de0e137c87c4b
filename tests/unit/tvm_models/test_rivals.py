"""Which runtimes a bundle is compared with: all that are installed, or the one that was named."""

from pathlib import Path
from typing import Any

import pytest

from tuneloom.errors import InputError
from tuneloom.tuners.tvm.models.rivals import runtimes
from tuneloom.tuners.tvm.models.rivals.runtimes import (
    BEST,
    Comparable,
    competitors,
    installed_rivals,
    open_rival,
    rival_of,
)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The modules that are installed."""
    found: set[str] = set()
    monkeypatch.setattr(runtimes, "find_spec", lambda name: name if name in found else None)
    return found


def comparable(folder: Path, name: str, device: str = "cpu") -> Comparable:
    (folder / name).touch()
    return Comparable(model=str(folder / name), inputs=(), outputs=(), device=device)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("zoo:resnet18", ["onnxruntime", "openvino"]),
        ("net.onnx", ["onnxruntime", "openvino"]),
        ("net.tflite", ["tflite", "openvino"]),
        ("net.pt2", ["torch"]),
    ],
)
def test_a_file_runs_in_its_own_runtime_and_in_others(
    model: str, expected: list[str], here: set[str]
) -> None:
    assert installed_rivals(model) == []
    here.update(("onnxruntime", "openvino", "torch", "ai_edge_litert"))
    assert installed_rivals(model) == expected and rival_of(model) == expected[0]


def test_the_best_is_found_among_what_is_installed(here: set[str], tmp_path: Path) -> None:
    here.update(("openvino", "torch"))
    assert list(competitors(BEST, comparable(tmp_path, "net.onnx"))) == ["openvino"]
    here.add("onnxruntime")
    assert list(competitors(BEST, comparable(tmp_path, "net.onnx"))) == ["onnxruntime", "openvino"]


def test_where_nothing_is_installed_the_remedy_is_told(here: set[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pip install ai-edge-litert or openvino"):
        competitors(BEST, comparable(tmp_path, "net.tflite"))


def test_a_runtime_that_was_named_and_is_missing_refuses_in_one_line(here: set[str], tmp_path: Path) -> None:
    way: Any = competitors("openvino", comparable(tmp_path, "net.onnx"))["openvino"]
    with pytest.raises(InputError, match=r"^openvino is not installed; pip install openvino$"):
        way()
    with pytest.raises(InputError, match="pip install ai-edge-litert"):
        open_rival("tflite", comparable(tmp_path, "net.tflite").model, (), (), 1)


def test_a_runtime_that_does_not_run_such_files_names_the_one_that_does(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="compare it with --against torch"):
        competitors("openvino", comparable(tmp_path, "net.pt2"))


def test_openvino_is_no_rival_on_a_gpu(here: set[str], tmp_path: Path) -> None:
    here.add("openvino")
    with pytest.raises(InputError, match="openvino runs on CPUs only"):
        competitors(BEST, comparable(tmp_path, "net.onnx", device="cuda"))
