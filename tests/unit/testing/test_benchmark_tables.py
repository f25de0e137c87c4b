"""The page of benchmarks names programs that exist."""

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return import_module("tables")


def compared(cores: int, ratio: float, **more: float) -> dict[str, object]:
    same = {"model": "net", "trials": 60, "ours_s": ratio, "onnxruntime_s": 1.0, "spread": [ratio, ratio]}
    return same | {"cores": cores, "ratio": ratio, "difference": 0.0} | more


def test_every_section_names_the_program_that_measures_it(tables: ModuleType) -> None:
    assert len(tables.SECTIONS) > 10
    for section in tables.SECTIONS:
        program = section.command.split()[0]
        assert (ROOT / program).is_file(), section.title


def test_networks_are_summed_up_by_cores_and_trials(tables: ModuleType) -> None:
    rows = [compared(1, 0.5, against_openvino=1.1), compared(2, 0.7), compared(1, 2.0, against_openvino=1.0)]
    drawn = tables.networks.against_onnxruntime(rows).splitlines()
    assert drawn[2] == "| 1 | 60 | 2 | 1.00 | 1 | 2.00 | – | 1.05 | 1 of 2 |"
    assert drawn[3] == "| 2 | 60 | 1 | 0.70 | 0 | 0.70 | – | – | – |"


def test_the_readme_says_what_was_measured(tables: ModuleType) -> None:
    rows = json.loads((ROOT / "benchmarks" / "results" / "against_onnxruntime_x86.json").read_text())
    assert tables.networks.headline(rows) in " ".join((ROOT / "README.md").read_text().split())


def test_results_of_any_form_become_tables(tables: ModuleType) -> None:
    drawn = tables.as_it_is({"runs": 3, "rows": [{"a": 1, "b": 0.123456}, {"a": 2000, "b": 1.0}]})
    assert "| runs | 3 |" in drawn
    assert "| 1 | 0.1235 |" in drawn and "| 2,000 | 1 |" in drawn


def test_every_page_that_the_readme_names_exists() -> None:
    readme = (ROOT / "README.md").read_text()
    named = [piece.partition(")")[0] for piece in readme.split("](")[1:]]
    assert len(named) > 10
    for name in named:
        assert name.startswith("http") or (ROOT / name.partition("#")[0]).exists(), name
