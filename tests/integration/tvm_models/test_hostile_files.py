"""Files that once ended in an internal error are rejected in one line (benchmarks/hostile_files.py)."""

from pathlib import Path

import pytest

from tuneloom.errors import InputError
from tuneloom.model import ModelRecipe
from tuneloom.tuners.tvm.models.opening import open_model

FILES = sorted(path for path in Path(__file__).with_name("hostile").iterdir())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_that_breaks_the_rules_is_rejected_in_one_line(path: Path) -> None:
    told = open_model(ModelRecipe(key=path.name, source=str(path), shapes={}, target="cpu"))
    assert isinstance(told, InputError)
    assert path.name in str(told) or path.stem in str(told)
    assert "\n" not in str(told)
