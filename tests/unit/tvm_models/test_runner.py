"""The program that is copied into every bundle."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tuneloom.tuners.tvm.models.compiling import foreign
from tuneloom.tuners.tvm.runner import command, parts
from tuneloom.tuners.tvm.runner.refused import Refused


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
    parts.run_by_interpreter(Doubling())(Tensor([1.0, 3.0]), target)
    assert target.value.tolist() == [2.0, 6.0]


def test_bundles_and_tuning_run_parts_by_the_same_functions() -> None:
    assert foreign.run_by_interpreter is parts.run_by_interpreter
    assert foreign.run_by_session is parts.run_by_session


def test_files_that_hold_no_array_are_refused_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(3))
    np.savez(tmp_path / "x.npz", x=np.arange(3))
    assert command.array_in(str(tmp_path / "x.npy")).tolist() == [0, 1, 2]
    with pytest.raises(Refused, match=r"x.npz can't be read as a NumPy array"):
        command.array_in(str(tmp_path / "x.npz"))


def test_an_output_that_can_not_be_written_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Echo:
        def __init__(self, _folder: Path) -> None: ...

        def run(self, values: list[Any]) -> list[Any]:
            return values

    np.save(tmp_path / "x.npy", np.arange(3))
    monkeypatch.setattr(command, "Model", Echo)
    words = ["run.py", "--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "missing" / "y.npy")]
    monkeypatch.setattr(sys, "argv", words)
    assert command.main() == 2
    told = capsys.readouterr().err
    assert told.startswith("run.py: ") and "No such file or directory" in told and told.count("\n") == 1
