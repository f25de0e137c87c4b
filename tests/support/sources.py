"""The package's own source as trees: each file is read once for all tests that look at it."""

import ast
from collections.abc import Iterator
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


def children_imported(package: Path) -> dict[str, set[str]]:
    """For each file and room directly in a package, which others of them it imports, type hints included."""
    inside = "tuneloom." + "".join(f"{part}." for part in package.relative_to(SOURCE).parts)
    children = {path.stem for path in package.iterdir() if path.suffix == ".py" or path.is_dir()}
    graph: dict[str, set[str]] = {child: set() for child in children - {"__init__", "__pycache__"}}
    for path in package.rglob("*.py"):
        here = path.relative_to(package).parts[0].removesuffix(".py")
        modules = names_imported(path) if here in graph else ()
        found = {module.removeprefix(inside).split(".")[0] for module in modules if module.startswith(inside)}
        graph.get(here, set()).update((found & graph.keys()) - {here})
    return graph


def names_imported(path: Path) -> Iterator[str]:
    """Modules that a file imports, and what it imports from them, which may be modules, too."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
