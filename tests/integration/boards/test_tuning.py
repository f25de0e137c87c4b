"""A network tuned on a board: this very machine, reached over TVM's RPC protocol, which fails on the way."""

import json
import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.boards.local import BoardProcess
from support.models.onnx_files import write_network
from support.ports import reserved_port
from tuneloom.app.farm.evaluating import evaluate_on_farm
from tuneloom.app.runs.executing.in_process import tune
from tuneloom.app.runs.settings import RunSettings
from tuneloom.errors import FarmError
from tuneloom.model import Budget, JobSpec, Trial
from tuneloom.store import JobStatus

TARGET = json.dumps({"kind": "llvm", "mtriple": f"{platform.machine()}-linux-gnu"})


def farm_of(folder: Path, address: str) -> Path:
    path = folder / "farm.toml"
    device = f"key = 'test'\nkind = 'rpc'\naddress = '{address}'\ntarget = '{TARGET}'"
    path.write_text(f"engine = 'local'\n[[devices]]\n{device}\n")
    return path


@pytest.fixture
def port() -> Iterator[int]:
    with reserved_port() as reserved:
        yield reserved


def test_a_network_is_tuned_on_a_board_that_dies_and_returns_and_no_trial_is_lost(
    port: int, tmp_path: Path
) -> None:
    boards = [BoardProcess.real(TARGET, port=port).__enter__()]
    farm = farm_of(tmp_path, boards[0].board.address)
    trials: list[Trial] = []

    def fail_once(_job: str, trial: Trial) -> None:
        trials.append(trial)
        if len(trials) == 4:
            boards[0].kill()
            boards.append(BoardProcess.real(TARGET, port=port).__enter__())

    spec = JobSpec(
        name="net",
        model=str(write_network(tmp_path / "net.onnx")),
        budget=Budget(trials=12),
        batch=4,
        device_key="test",
        out=str(tmp_path / "fast"),
    )
    settings = RunSettings(store=str(tmp_path / "store.db"), farm=str(farm))
    try:
        outcome = tune([spec], settings, on_trial=fail_once)
        (job,) = outcome.jobs
        assert outcome.failure is None and job.status is JobStatus.FINISHED
        assert (len(trials), job.result["trials"], job.result["failures"]) == (12, 12, {})
        manifest = json.loads((tmp_path / "fast" / "bundle.json").read_text())
        assert manifest["target"]["triple"] == f"{platform.machine()}-linux-gnu"
        assert manifest["target"]["machine"] == platform.machine()
        timed = evaluate_on_farm(tmp_path / "fast", farm, 0.1)
        assert timed["device"] == f"test@{boards[0].board.address}"
        assert timed["difference"] < 1e-4 and 0 < timed["low_s"] <= timed["median_s"]
    finally:
        for board in boards:
            board.__exit__(None, None, None)
    with pytest.raises(FarmError, match=r"no answer from 127\.0\.0\.1:\d+: Connection refused"):
        evaluate_on_farm(tmp_path / "fast", farm, 0.1)
    with pytest.raises(FarmError, match="has no board with key 'other'; known: 'test'"):
        evaluate_on_farm(tmp_path / "fast", farm, 0.1, "other")
