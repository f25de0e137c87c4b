"""Who may import whom, as the architecture page says."""

import ast
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from support.sources import FILES, SOURCE, children_imported, nodes_of, place_of

RANK = {
    "__main__": 8,
    "cli": 7,
    "server": 6,
    "client": 6,
    "session": 6,
    "kernel": 6,
    "inference": 6,
    "pytorch": 7,
    "app": 5,
    "testing": 6,
    "engine": 4,
    "tuners": 4,
    "transfer": 4,
    "store": 4,
    "report": 4,
    "simulation": 4,
    "backends": 3,
    "compiler": 2,
    "scheduling": 3,
    "model": 2,
    "gpus": 2,
    "joining": 1,
    "errors": 1,
}
ONLY_IN = {
    "tvm": ("backends", "compiler", "tuners/tvm", "transfer/traces"),
    "tvm_ffi": ("backends", "compiler", "tuners/tvm", "transfer/traces"),
    "ray": ("engine/ray/cluster.py",),
    "sqlalchemy": ("store",),
    "fastapi": ("server",),
    "starlette": ("server",),
    "pydantic": ("server",),
    "uvicorn": ("server",),
    "prometheus_client": ("server",),
    "httpx": ("client",),
    "httpx_sse": ("client",),
    "pynvml": ("gpus.py",),
}


def imports_of(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            if node.module == "tuneloom":
                yield from (f"tuneloom.{alias.name}" for alias in node.names)
            elif node.module == "tuneloom.compiler.lazy":
                yield from ("onnx" if alias.name == "onnx" else "tvm" for alias in node.names)
            else:
                yield node.module


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def forbidden(paths: Iterable[Path], may_import: Callable[[Path, str], bool]) -> list[str]:
    found = ((path, module) for path in paths for module in imports_of(path))
    return [f"{place_of(path)} imports {module}" for path, module in found if not may_import(path, module)]


def goes_downwards(path: Path, module: str) -> bool:
    room, parts = room_of(path), module.split(".")
    if room == "__init__" or parts[0] != "tuneloom" or len(parts) < 2 or parts[1] == "__version__":
        return True
    return parts[1] == room or RANK[parts[1]] < RANK[room]


def stays_in_its_room(path: Path, module: str) -> bool:
    rooms = ONLY_IN.get(module.split(".")[0])
    return rooms is None or place_of(path).startswith(rooms)


def test_imports_go_downwards_only() -> None:
    assert len(FILES) > 500
    assert forbidden(FILES, goes_downwards) == []


def test_heavy_packages_stay_in_their_rooms() -> None:
    assert forbidden(FILES, stays_in_its_room) == []


def test_an_import_that_goes_upwards_or_into_another_room_is_named() -> None:
    executor = SOURCE / "app" / "runs" / "executing" / "executor.py"
    assert executor in FILES
    assert not goes_downwards(SOURCE / "model" / "job.py", "tuneloom.store")
    assert not stays_in_its_room(executor, "tvm.relax")
    assert f"{place_of(executor)} imports tuneloom.store" in forbidden([executor], lambda *_: False)


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """Names of which each imports the next and the last imports the first; empty if there is none."""
    left = {name: set(needed) for name, needed in graph.items()}
    while free := [name for name, needed in left.items() if not needed & left.keys()]:
        for name in free:
            del left[name]
    way: list[str] = [min(left)] if left else []
    while way and way[-1] not in way[:-1]:
        way.append(min(left[way[-1]] & left.keys()))
    return way[way.index(way[-1]) :] if way else []


PACKAGES = sorted(path.parent for path in FILES if path.name == "__init__.py")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.relative_to(SOURCE.parent).as_posix())
def test_no_circle_of_imports_between_the_files_and_rooms_of_a_package(package: Path) -> None:
    circle = circle_in(children_imported(package))
    assert not circle, f"{' imports '.join(circle)}"


def test_a_circle_is_found_and_a_tree_has_none() -> None:
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c", "b"]


def classes_in(paths: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    for path in paths:
        nodes = nodes_of(path)
        yield from ((node.name, path) for node in nodes if isinstance(node, ast.ClassDef))


def shared_names(paths: Iterable[Path]) -> dict[str, list[str]]:
    """Names that several classes have, and where those are."""
    found: dict[str, list[str]] = {}
    for name, path in classes_in(paths):
        found.setdefault(name, []).append(path.name)
    return {name: places for name, places in found.items() if len(places) > 1}


def test_no_two_classes_share_a_name() -> None:
    assert len(list(classes_in(FILES))) > 500
    assert shared_names(FILES) == {}


def test_a_name_that_two_classes_share_is_found(tmp_path: Path) -> None:
    for file in ("one.py", "other.py"):
        (tmp_path / file).write_text("def make():\n    class Twin: ...\n")
    assert shared_names(sorted(tmp_path.iterdir())) == {"Twin": ["one.py", "other.py"]}
