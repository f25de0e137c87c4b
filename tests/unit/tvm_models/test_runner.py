"""The program that is copied into every bundle."""

import ast
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuneloom.tuners.tvm import runner
from tuneloom.tuners.tvm.models.compiling import foreign

ALLOWED = {"numpy", "ml_dtypes", "tvm", "tvm_ffi", "onnxruntime", "ai_edge_litert", "openvino", "torch"}
# TVM brings ml_dtypes; a runtime is imported for models that were left to it


def test_the_runner_needs_nothing_but_numpy_and_the_runtimes() -> None:
    imported = set()
    for node in ast.walk(ast.parse(Path(runner.__file__).read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module))
    assert {name.split(".")[0] for name in imported} <= ALLOWED | sys.stdlib_module_names


class Tensor:
    """A tensor as far as LiteRT needs it."""

    def __init__(self, value: Any) -> None:
        self.value = np.asarray(value)

    def numpy(self) -> Any:
        return self.value

    def copyfrom(self, value: Any) -> None:
        self.value = value


class Doubling:
    """An interpreter that doubles its only input, and notes how its input was sized."""

    def __init__(self) -> None:
        self.shape: tuple[int, ...] = ()
        self.value: Any = None

    def get_input_details(self) -> list[dict[str, int]]:
        return [{"index": 7}]

    def get_output_details(self) -> list[dict[str, int]]:
        return [{"index": 9}]

    def resize_tensor_input(self, place: int, shape: tuple[int, ...]) -> None:
        assert place == 7
        self.shape = shape

    def allocate_tensors(self) -> None: ...

    def set_tensor(self, place: int, value: Any) -> None:
        assert value.shape == self.shape
        self.value = value

    def invoke(self) -> None:
        self.value = self.value * 2

    def get_tensor(self, place: int) -> Any:
        assert place == 9
        return self.value


def test_an_interpreter_fills_the_tensor_that_the_program_gives_it() -> None:
    target = Tensor([0.0, 0.0])
    runner.run_by_interpreter(Doubling())(Tensor([1.0, 3.0]), target)
    assert target.value.tolist() == [2.0, 6.0]


def test_bundles_and_tuning_run_parts_by_the_same_functions() -> None:
    assert foreign.run_by_interpreter is runner.run_by_interpreter
    assert foreign.run_by_session is runner.run_by_session


def test_files_that_hold_no_array_are_refused_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    np.savez(tmp_path / "x.npz", x=np.arange(3))
    assert runner.array_in(str(tmp_path / "x.npy")).tolist() == [0, 1, 2]
    with pytest.raises(runner.Refused, match=r"x.npz can't be read as a NumPy array"):
        runner.array_in(str(tmp_path / "x.npz"))


def test_an_output_that_can_not_be_written_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Echo:
        def __init__(self, _folder: Path) -> None: ...

        def run(self, values: list[Any]) -> list[Any]:
            return values

    np.save(tmp_path / "x.npy", np.arange(3))
    monkeypatch.setattr(runner, "Model", Echo)
    words = ["run.py", "--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "missing" / "y.npy")]
    monkeypatch.setattr(sys, "argv", words)
    assert runner.main() == 2
    told = capsys.readouterr().err
    assert told.startswith("run.py: ") and "No such file or directory" in told and told.count("\n") == 1
