"""A board of the other architecture, emulated: cross-compiled, tuned over RPC, outputs as everywhere.

`make emulated-board` sets it up; without it these tests are skipped. No time is looked at.
"""

import json
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from support.boards.local import BoardProcess, calling, profile_on
from support.models.onnx_files import network_input, write_network
from tuneloom.app.farm.evaluating import evaluate_on_farm
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.backends.resolving import resolve_target
from tuneloom.engine.calls import Returned, TimedOut
from tuneloom.engine.local import LocalEngine
from tuneloom.model import Budget, Failure, JobSpec, Measurement, MeasuringRules
from tuneloom.tuners.tvm.measuring.canary import canary_payload

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "tools" / "emulated_board.sh"
FOREIGN = {"aarch64": "x86_64", "x86_64": "aarch64"}.get(platform.machine(), "")
TARGET = json.dumps({"kind": "llvm", "mtriple": f"{FOREIGN}-linux-gnu"})

pytestmark = pytest.mark.skipif(
    not (ROOT / ".emulated-board" / "site").is_dir(), reason="there is no emulated board; make emulated-board"
)


@pytest.fixture(scope="module")
def board() -> Iterator[BoardProcess]:
    with BoardProcess([str(SCRIPT), "serve", "0"], key="emulated", target=TARGET) as one:
        yield one


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    engine = LocalEngine("tuneloom.tuners.tvm.warmth:warm_up")
    yield engine
    engine.close()


def test_a_crashing_and_a_hanging_candidate_cost_one_trial_each(
    engine: LocalEngine, board: BoardProcess
) -> None:
    crashed = profile_on(engine, board.board, calling(TARGET, ("abort",)))
    assert isinstance(crashed, Returned) and isinstance(crashed.value, Failure)
    assert isinstance(profile_on(engine, board.board, calling(TARGET, ("pause",)), limit_s=5), TimedOut)
    again = profile_on(engine, board.board, canary_payload(resolve_target(TARGET)))
    assert isinstance(again, Returned) and isinstance(again.value, Measurement)


def test_a_convolution_network_is_tuned_there_and_its_bundle_runs_there(
    board: BoardProcess, tmp_path: Path
) -> None:
    farm = tmp_path / "farm.toml"
    device = f"key = 'emulated'\nkind = 'rpc'\naddress = '{board.board.address}'\ntarget = '{TARGET}'"
    farm.write_text(f"engine = 'local'\n[[devices]]\n{device}\n")
    spec = JobSpec(
        name="net",
        model=str(write_network(tmp_path / "net.onnx")),
        budget=Budget(trials=8),
        measuring=MeasuringRules(run_timeout_s=120),
        device_key="emulated",
        out=str(tmp_path / "fast"),
    )
    outcome = tune([spec], RunSettings(store=str(tmp_path / "store.db"), farm=str(farm)))
    (job,) = outcome.jobs
    assert outcome.failure is None and job.result["failures"] == {}
    assert job.result["output_difference"] < 1e-3
    assert evaluate_on_farm(tmp_path / "fast", farm, 0.1)["difference"] < 1e-4
    np.save(tmp_path / "x.npy", network_input())
    words = ["python", "fast/run.py", "--input", "x.npy", "--output", "y.npy"]
    done = subprocess.run([str(SCRIPT), *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"))
    (expected,) = session.run(None, {session.get_inputs()[0].name: network_input()})
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-3, atol=1e-4)
