"""What differs between kinds of hardware is asked of their backends, never of a name."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "tuneloom"
NAMES = {"llvm", "cuda", "cpu"}
OWN = ("backends/cpu", "backends/cuda", "testing")


def questions(text: str) -> Iterator[int]:
    """Lines that compare something with the name of a backend or of a kind of target."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Compare) and any(map(_is_name, (node.left, *node.comparators))):
            yield node.lineno


def _is_name(node: ast.expr) -> bool:
    values = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    return any(isinstance(value, ast.Constant) and value.value in NAMES for value in values)


FILES = [
    path for path in sorted(SOURCE.rglob("*.py")) if not path.relative_to(SOURCE).as_posix().startswith(OWN)
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_nothing_outside_a_backend_asks_for_a_kind_of_hardware(path: Path) -> None:
    assert list(questions(path.read_text())) == []


@pytest.mark.parametrize(
    "text", ['target.kind == "llvm"', '"cuda" in target', 'kind not in ("cpu", "llvm")', 'x != "cuda"']
)
def test_questions_are_found(text: str) -> None:
    assert list(questions(text)) == [1]
