"""Images are built from what pyproject.toml says, and nothing in them runs as root."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

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


def test_every_group_of_the_cluster_gets_the_token_once() -> None:
    yaml = pytest.importorskip("yaml")
    values = yaml.safe_load((ROOT / "containers" / "kuberay-values.yaml").read_text())
    shared = [variable["name"] for variable in values["common"]["containerEnv"]]
    assert shared == ["RAY_AUTH_MODE", "RAY_AUTH_TOKEN"]
    for group in (values["head"], values["worker"], *values["additionalWorkerGroups"].values()):
        own = [variable["name"] for variable in group["containerEnv"]]  # the chart fails without a list
        assert not set(own) & set(shared)
        assert group["securityContext"]["runAsNonRoot"]


def test_the_farm_on_one_machine_has_images_that_are_built_and_a_network_of_its_own() -> None:
    yaml = pytest.importorskip("yaml")
    compose = yaml.safe_load((ROOT / "containers" / "compose.yaml").read_text())
    targets = {service["build"]["target"] for service in compose["services"].values()}
    assert targets <= set(re.findall(r"^FROM \S+ AS (\S+)$", CONTAINERFILE, flags=re.M))
    assert compose["networks"]["farm"] == {"internal": True}
    assert "6379" not in str([service.get("ports") for service in compose["services"].values()])
    for service in compose["services"].values():
        assert set(service.get("networks", ())) <= set(compose["networks"])
        if "board" not in service["image"]:
            assert "devices:/tmp/tuneloom-devices" in service["volumes"], "they measure on the same cores"
        named = {str(volume).partition(":")[0] for volume in service.get("volumes", ())}
        assert {name for name in named if not name.startswith(".")} <= set(compose["volumes"])
