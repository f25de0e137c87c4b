"""Images are built from what pyproject.toml says, and nothing in them runs as root."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
CONTAINERFILE = (ROOT / "containers" / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


LOCKS = {
    "containers/locks/agent.txt": ("farm", "onnxruntime", "postgres"),
    "containers/locks/service.txt": ("server", "onnxruntime", "postgres"),
    "containers/locks/board.txt": ("--board",),
    "requirements-dev.lock": ("dev",),
}
"""Lock files, and what each of them was made for."""


def requirements(*words: str) -> list[str]:
    command = [sys.executable, str(ROOT / "containers" / "requirements.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split("\n")[:-1]


def test_every_image_installs_its_lock_and_nothing_else_from_an_index() -> None:
    locked = re.findall(r"--require-hashes -r /build/(\w+\.txt)", CONTAINERFILE)
    assert sorted(f"containers/locks/{name}" for name in locked) == sorted(LOCKS)[:3]
    assert all(
        "--require-hashes" in line or "--no-deps" in line
        for line in CONTAINERFILE.split("\n")
        if "pip install" in line
    )


def pins_of(path: str) -> list[Requirement]:
    text = (ROOT / path).read_text().replace("\\\n", " ")
    return [Requirement(line.partition("--hash")[0]) for line in text.split("\n") if line and line[0] != "#"]


@pytest.mark.parametrize("path", LOCKS)
def test_a_lock_has_a_version_of_everything_that_the_project_wants(path: str) -> None:
    pins = {(canonicalize_name(pin.name), next(iter(pin.specifier)).version) for pin in pins_of(path)}
    for wanted in map(Requirement, requirements(*LOCKS[path])):
        versions = [version for name, version in pins if name == canonicalize_name(wanted.name)]
        assert versions and all(version in wanted.specifier for version in versions), (
            f"{wanted}: run `make lock`"
        )


@pytest.mark.parametrize("path", LOCKS)
def test_a_lock_has_hashes_of_everything_and_names_no_index(path: str) -> None:
    lines = (ROOT / path).read_text().replace("\\\n", " ").splitlines()
    assert lines and all("--hash=sha256:" in line and "://" not in line for line in lines)


def test_everything_that_images_copy_is_among_what_a_build_sees() -> None:
    """A build that copies what .containerignore leaves out fails."""
    seen = [line[1:] for line in (ROOT / ".containerignore").read_text().split() if line.startswith("!")]
    copied = [
        source
        for line in re.findall(r"^COPY (?!--from)(.+) \S+$", CONTAINERFILE, flags=re.M)
        for source in line.split()
    ]
    assert len(copied) >= 5
    for source in copied:
        assert any(source == one or source.startswith(f"{one}/") for one in seen), source


def test_charts_name_the_version_that_the_project_has() -> None:
    values = (ROOT / "containers" / "kuberay-values.yaml").read_text()
    assert set(re.findall(r'tag: "([^"]+)"', values)) == {PROJECT["version"]}


def test_a_board_gets_no_compiler_of_models_and_no_store() -> None:
    found = requirements("--board")
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
