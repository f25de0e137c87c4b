"""Images are built from what pyproject.toml says, and nothing in them runs as root."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "containers" / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements(folder: Path, *words: str) -> list[str]:
    for name in ("pyproject.toml", "containers/requirements.py"):
        (folder / Path(name).name).write_text((ROOT / name).read_text())
    command = [sys.executable, str(folder / "requirements.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def test_every_image_has_the_versions_of_the_project(tmp_path: Path) -> None:
    asked = re.findall(r"requirements\.py ([a-z -]+?) >", CONTAINERFILE)
    assert len(asked) == 3
    for words in asked:
        found = requirements(tmp_path, *words.split())
        assert {"apache-tvm==0.27.0.post1", "apache-tvm-ffi==0.1.14.post1"} <= set(found)
        if words != "--board":
            assert set(PROJECT["dependencies"]) <= set(found)


def test_a_board_gets_no_compiler_of_models_and_no_store(tmp_path: Path) -> None:
    found = requirements(tmp_path, "--board")
    assert not any(one.startswith(("onnx", "sqlalchemy", "xgboost", "scipy")) for one in found)
    assert set(found) < set(PROJECT["dependencies"])


def test_no_image_runs_as_root() -> None:
    stages = re.split(r"^FROM ", CONTAINERFILE, flags=re.M)
    final = [stage for stage in stages if "ENTRYPOINT" in stage]
    assert len(final) == 3
    assert all("\nUSER 10001\n" in stage for stage in final)
