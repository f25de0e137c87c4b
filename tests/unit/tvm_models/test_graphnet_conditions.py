"""Rows of GraphNet's benchmark are resumed only where they were measured alike."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from graphnet import conditions

OPTIONS = Namespace(device="cpu", dtype="float32", trials=60, seconds=None, cores_each=1)


def test_a_row_of_another_commit_is_resumed() -> None:
    now = conditions.of(OPTIONS)
    assert conditions.agree({**now, "sample": "a", "commit": "another"}, now)


@pytest.mark.parametrize(
    "change",
    [{"trials": 20}, {"seconds": 9.0}, {"dtype": "float16"}, {"cpu": "m68k"}, {"method": "older"}],
    ids=lambda one: next(iter(one)),
)
def test_a_row_of_other_conditions_is_measured_again(change: dict[str, Any]) -> None:
    now = conditions.of(OPTIONS)
    assert not conditions.agree({**now, **change}, now)


@pytest.mark.parametrize("method", conditions._ALIKE_ON_CPUS)
def test_a_row_of_programs_that_measured_alike_is_resumed(method: str) -> None:
    now = conditions.of(OPTIONS)
    assert conditions.agree({**now, "method": method}, now)


@pytest.mark.parametrize("method", conditions._ALIKE_ON_CPUS)
def test_a_row_of_a_gpu_that_lacks_a_side_is_measured_again(method: str) -> None:
    now = conditions.of(Namespace(**{**vars(OPTIONS), "device": "cuda"}))
    assert not conditions.agree({**now, "method": method}, now)


def test_a_row_that_does_not_say_its_conditions_is_measured_again() -> None:
    assert not conditions.agree({"device": "cpu", "dtype": "float32"}, conditions.of(OPTIONS))
