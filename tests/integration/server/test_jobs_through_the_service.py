"""A job through the service, from the file to the bundle, on both databases."""

import json
import signal
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from support.models.onnx_files import network_input, write_network
from tuneloom.backends.resolving import resolve_target

from .conftest import PATIENCE_S, Team

pytestmark = pytest.mark.integration
SLOW = "mock:tasks=2,size=4000,build=0.01,profile=0.01"


def test_a_model_is_uploaded_tuned_and_fetched(team: Team, tmp_path: Path) -> None:
    client = team.serve()
    team.execute()
    with client:
        digest = client.upload(write_network(tmp_path / "net.onnx"))
        team.wait_until(lambda: client.ask("GET", f"/models/{digest}")["state"] == "ready")
        job = client.submit(digest, trials=4, batch=4, name="small").wait()
        assert (job.status, job.details["failure"]) == ("finished", None)
        job.fetch(tmp_path / "fast")
    assert json.loads((tmp_path / "fast" / "bundle.json").read_text())["name"] == "small"


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_model_is_tuned_in_int8_on_samples_that_are_uploaded_with_it(team: Team, tmp_path: Path) -> None:
    if resolve_target("cpu").dots is None:
        pytest.skip("this CPU has no dot products")
    model = write_network(tmp_path / "net.onnx", channels=32)
    np.savez(tmp_path / "noise.npz", x=network_input(channels=32))
    with team.serve() as client:
        team.execute()
        job = client.submit(
            model, trials=4, batch=4, dtype="int8", samples=str(tmp_path / "noise.npz")
        ).wait()
    assert (job.status, job.details["failure"]) == ("finished", None)
    assert any("int8: outputs differ by" in note for note in job.details["result"]["notes"])


def test_a_server_and_its_executor_are_stopped_and_the_job_goes_on_on_a_farm(team: Team) -> None:
    with team.serve() as client:
        job = client.submit(SLOW, trials=60, batch=4)
        executor = team.execute_until(8, signal.SIGTERM)
        assert executor.wait(PATIENCE_S) == 0
        assert "trials" in (event.name for event in islice(job.events(), 3))
        team.started[0].send_signal(signal.SIGKILL)
    team.started.pop(0).communicate()
    farm = team.workplace.folder / "farm.toml"
    farm.write_text('engine = "local"\n[[devices]]\nkey = "cpu"\nkind = "cpu"\ncores = 1\n')
    with team.serve() as again:
        assert again.job(job.id).status in ("waiting", "running")
        team.execute("--farm", str(farm))
        team.wait_until(lambda: any(device["key"] == "cpu" for device in again.devices()))
        ended = again.job(job.id).wait()
        assert (ended.status, ended.details["result"]["trials"]) == ("finished", 60)
