"""The page of benchmarks names programs that exist."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parents[3]


def tables() -> ModuleType:
    spec = spec_from_file_location("tables", ROOT / "benchmarks" / "tables.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules["tables"] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_section_names_the_program_that_measures_it() -> None:
    for section in tables().SECTIONS:
        program = section.command.split()[0]
        assert (ROOT / program).is_file(), section.title


def test_results_of_any_form_become_tables() -> None:
    drawn = tables().as_it_is({"runs": 3, "rows": [{"a": 1, "b": 0.123456}, {"a": 2000, "b": 1.0}]})
    assert "| runs | 3 |" in drawn
    assert "| 1 | 0.1235 |" in drawn and "| 2,000 | 1 |" in drawn


def test_every_page_that_the_readme_names_exists() -> None:
    readme = (ROOT / "README.md").read_text()
    named = [piece.partition(")")[0] for piece in readme.split("](")[1:]]
    for name in named:
        assert name.startswith("http") or (ROOT / name).exists(), name
