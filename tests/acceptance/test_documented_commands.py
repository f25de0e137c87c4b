"""Every command in the README and in docs/ is run, page by page, in a folder of its own.

Those of the README start as they do for users, all others and Python programs as forks of a warm interpreter.
"""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.c_kernel import write_c_kernel
from support.commands import Workplace
from support.documents import Block, blocks_of
from support.models.onnx_files import network_input, write_network
from support.models.tflite_files import write_tflite
from support.warm import WarmInterpreter

ROOT = Path(__file__).parents[2]
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if blocks_of(page)]
TOO_LONG_S = 900


@pytest.fixture(scope="session")
def commands(warm: WarmInterpreter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `python` and `tuneloom` that start in milliseconds."""
    folder = tmp_path_factory.mktemp("commands")
    warm.write_commands(folder)
    return folder


def prepared(folder: Path, commands: Path) -> Workplace:
    """What the pages suppose to lie around: models, an input, a kernel and the examples."""
    for name in ("net.onnx", "other.onnx"):
        write_network(folder / name)
    write_network(folder / "dynamic.onnx", batch="N")
    write_tflite(folder / "net.tflite")
    np.save(folder / "x.npy", network_input())
    write_c_kernel(folder)
    (folder / "examples").symlink_to(ROOT / "examples")
    return Workplace(folder=folder, environment={"PATH": path_with(commands)})


def path_with(commands: Path) -> str:
    return os.pathsep.join([str(commands), os.environ["PATH"]])


def run_block(place: Workplace, page: Path, block: Block) -> None:
    for command in block.commands:
        words = ["python" if block.kind == "python" else "bash", "-c", command]
        done = subprocess.run(
            words,
            cwd=place.folder,
            env=place.variables(),
            capture_output=True,
            text=True,
            timeout=TOO_LONG_S,
            check=False,
        )
        told = f"{page.name}:{block.line}: {command}\n{done.stdout}{done.stderr}"
        assert done.returncode == block.exit_code, told
        assert "Traceback" not in done.stderr, told


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_work_as_written(page: Path, tmp_path: Path, commands: Path) -> None:
    warm = prepared(tmp_path, commands)
    as_for_users = replace(warm, environment={"PATH": path_with(Path(sys.executable).parent)})
    for block in blocks_of(page):
        really = page.name == "README.md" and block.kind != "python"
        run_block(as_for_users if really else warm, page, block)


def test_the_pages_that_people_start_with_have_commands() -> None:
    assert {"README.md", "quickstart.md", "cli.md"} <= {page.name for page in PAGES}
