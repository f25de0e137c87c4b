"""What differs between kinds of hardware is asked of their backends, never of a name."""

import ast
from collections.abc import Iterable, Iterator

import pytest

from support.sources import FILES, looked_at, nodes_of, place_of

NAMES = {"llvm", "cuda", "cpu"}
OWN = ("backends/cpu", "backends/cuda", "testing")


def questions(nodes: Iterable[ast.AST]) -> Iterator[int]:
    """Lines that compare something with the name of a backend or of a kind of target."""
    for node in nodes:
        if isinstance(node, ast.Compare) and any(map(_is_name, (node.left, *node.comparators))):
            yield node.lineno


def _is_name(node: ast.expr) -> bool:
    values = node.elts if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]
    return any(isinstance(value, ast.Constant) and value.value in NAMES for value in values)


def test_nothing_outside_a_backend_asks_for_a_kind_of_hardware() -> None:
    outside = [path for path in FILES if not place_of(path).startswith(OWN)]
    assert len(outside) > 500
    asked = [f"{place_of(path)}:{line}" for path in outside for line in questions(nodes_of(path))]
    assert asked == []


@pytest.mark.parametrize(
    "text", ['target.kind == "llvm"', '"cuda" in target', 'kind not in ("cpu", "llvm")', 'x != "cuda"']
)
def test_questions_are_found(text: str) -> None:
    assert list(questions(looked_at(text))) == [1]
