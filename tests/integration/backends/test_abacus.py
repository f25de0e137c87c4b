"""A stranger's wheel brings an accelerator: backend, kind of device, implementer, by entry points alone."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from support.commands import Workplace, ended_afterwards
from support.warm import WarmInterpreter
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
def place(tmp_path: Path, site: Path, warm: WarmInterpreter) -> Workplace:
    write_perceptron(tmp_path / "perceptron.onnx")
    return Workplace(folder=tmp_path, environment={"PYTHONPATH": str(site)}, warm=warm)


def test_the_accelerator_fulfils_the_contract_of_backends_and_implementers(place: Workplace) -> None:
    (place.folder / "test_contract.py").write_text(CONTRACT)
    program = "import pytest; raise SystemExit(pytest.main())"
    words = ("-c", program, "-p", "no:cacheprovider")
    with ended_afterwards(place.start_python(*words, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")) as tests:
        out, error = tests.communicate(timeout=900)
    assert tests.wait() == 0 and " passed" in out, out[-3000:] + error


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
    again = place.run("evaluate", "fast", "--seconds", "0.1")
    assert again.returncode == 0, again.stderr


def test_without_the_wheel_its_target_is_unknown(place: Workplace) -> None:
    done = replace(place, environment={}).run("tune", "perceptron.onnx", "--target", "abacus")
    assert done.returncode == 2
    assert "unknown target 'abacus'" in done.stderr
