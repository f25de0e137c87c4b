"""Who may import whom, as the architecture page says."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "tuneloom"

RANK = {
    "cli": 6,
    "server": 6,
    "session": 6,
    "kernel": 6,
    "app": 5,
    "testing": 6,
    "engine": 4,
    "tuners": 4,
    "transfer": 4,
    "store": 4,
    "report": 4,
    "simulation": 4,
    "scheduling": 3,
    "model": 2,
    "errors": 1,
}
ONLY_IN = {
    "tvm": ("tuners/tvm", "transfer/traces"),
    "tvm_ffi": ("tuners/tvm", "transfer/traces"),
    "ray": ("engine/ray",),
    "sqlalchemy": ("store",),
    "fastapi": ("server",),
}


def imports_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            if node.module == "tuneloom":
                yield from (f"tuneloom.{alias.name}" for alias in node.names)
            else:
                yield node.module


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


FILES = sorted(SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_go_downwards_only(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        return
    for module in imports_of(path):
        parts = module.split(".")
        if parts[0] != "tuneloom" or len(parts) < 2 or parts[1] == "__version__":
            continue
        assert parts[1] == room or RANK[parts[1]] < RANK[room], f"{room} may not import {module}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_heavy_packages_stay_in_their_rooms(path: Path) -> None:
    place = path.relative_to(SOURCE).as_posix()
    for module in imports_of(path):
        rooms = ONLY_IN.get(module.split(".")[0])
        assert rooms is None or place.startswith(rooms), f"{place} may not import {module}"
