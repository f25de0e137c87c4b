"""The package's own source as trees: each file is read once for all tests that look at it."""

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "tuneloom"
FILES = sorted(SOURCE.rglob("*.py"))
_LOOKED_AT = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.Compare)


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """The imports, classes and comparisons of a file, wherever they stand in it."""
    return looked_at(path.read_text())


def looked_at(text: str) -> tuple[ast.AST, ...]:
    """The imports, classes and comparisons of a program."""
    return tuple(node for node in ast.walk(ast.parse(text)) if isinstance(node, _LOOKED_AT))


def place_of(path: Path) -> str:
    """How messages call a file of the package."""
    return path.relative_to(SOURCE).as_posix()
