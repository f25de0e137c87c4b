"""What runs without Tuneloom, in bundles and on boards, is joined to one file."""

import ast
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tuneloom import joining

RUNTIMES = {"numpy", "ml_dtypes", "tvm", "tvm_ffi", "onnxruntime", "ai_edge_litert", "openvino", "torch"}
# TVM brings ml_dtypes; a runtime is imported for models that were left to it
PROGRAMS = {
    "run.py": (joining.RUNNER, joining.run_py, RUNTIMES),
    "server.py": (joining.SERVER, joining.server_py, {"tvm", "tvm_ffi"}),
}
SOURCES = Path(joining.__file__).parents[1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_needs_nothing_but_the_runtimes(name: str) -> None:
    _, program, allowed = PROGRAMS[name]
    imported = set()
    for node in ast.walk(ast.parse(program())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(str(node.module))
    assert {one.split(".")[0] for one in imported} <= allowed | sys.stdlib_module_names


@pytest.mark.parametrize("modules", [joining.RUNNER, joining.SERVER])
def test_a_program_has_every_module_after_those_that_it_imports(modules: Sequence[str]) -> None:
    folder = SOURCES.joinpath(*modules[-1].split(".")[:-1])
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} <= {
        one.split(".")[-1] for one in modules
    }
    known: set[str] = set()
    for name in modules:
        nodes = ast.parse(SOURCES.joinpath(*name.split(".")).with_suffix(".py").read_text()).body
        own = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
        assert {module for module in own if "tuneloom" in module} <= known, name
        known.add(name)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_module_hides_a_name_of_another(name: str) -> None:
    nodes = ast.parse(PROGRAMS[name][1]()).body
    names = [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    names += [
        ast.unparse(target) for node in nodes if isinstance(node, ast.Assign) for target in node.targets
    ]
    assert len(names) > 15 and len(names) == len(set(names))
