"""A stranger's wheel brings an accelerator: backend, kind of device, implementer, by entry points alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.commands import Workplace
from tuneloom.testing.models.perceptron import write_perceptron

EXAMPLE = Path(__file__).parents[3] / "examples" / "abacus"
CONTRACT = """
from tuneloom.testing.contracts.backend import ImplementerContract


class TestAbacus(ImplementerContract):
    target = "abacus"
    implementer = "abacus"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's content, as pip installs it."""
    folder = tmp_path_factory.mktemp("site")
    source = folder / "source"
    subprocess.run(["cp", "-r", str(EXAMPLE), str(source)], check=True)  # setuptools builds beside the source
    command = ["-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run(
        [sys.executable, *command, "--target", str(folder / "packages"), str(source)],
        check=True,
        capture_output=True,
    )
    return folder / "packages"


@pytest.fixture
def place(tmp_path: Path, site: Path) -> Workplace:
    write_perceptron(tmp_path / "perceptron.onnx")
    return Workplace(folder=tmp_path, environment={"PYTHONPATH": str(site)})


def test_the_accelerator_fulfils_the_contract_of_backends_and_implementers(
    site: Path, tmp_path: Path
) -> None:
    (tmp_path / "test_contract.py").write_text(CONTRACT)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:]


def test_a_model_is_tuned_for_the_accelerator_and_its_code_is_in_the_bundle(place: Workplace) -> None:
    done = place.run(
        "tune", "perceptron.onnx", "--target", "abacus", "--trials", "15", "--out", "fast", "--json"
    )
    assert done.returncode == 0, done.stderr
    (job,) = json.loads(done.stdout)["jobs"]
    assert job["result"]["output_difference"] < 1e-3
    bundle = json.loads((place.folder / "fast" / "bundle.json").read_text())
    assert bundle["target"]["backend"] == "abacus"
    assert bundle["provenance"]["device_key"] == "abacus"
    makers = {kernel["implementer"] for kernel in bundle["kernels"].values()}
    assert makers <= {"tvm", "abacus"}
    assert set(bundle["implementers"]) == makers - {"tvm"} and bundle["requires"] == []
    again = place.run("evaluate", "fast")
    assert again.returncode == 0, again.stderr


def test_without_the_wheel_its_target_is_unknown(tmp_path: Path) -> None:
    write_perceptron(tmp_path / "perceptron.onnx")
    done = Workplace(folder=tmp_path).run("tune", "perceptron.onnx", "--target", "abacus")
    assert done.returncode == 2
    assert "unknown target 'abacus'" in done.stderr
