"""A session that tunes several models, one after the other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.models.onnx_files import write_network
from tuneloom import Session, session
from tuneloom.app.bundles.folders import require_free
from tuneloom.app.runs.executing.in_process import RunOutcome
from tuneloom.model import JobSpec
from tuneloom.store import JobRecord, JobStatus


@pytest.fixture
def tuned(monkeypatch: pytest.MonkeyPatch) -> list[JobSpec]:
    """The jobs that were tuned: their folders have to be free, and are full afterwards."""
    specs: list[JobSpec] = []

    def tune(jobs: Sequence[JobSpec], *_: Any) -> RunOutcome:
        (spec,) = jobs
        assert spec.out is not None
        require_free(Path(spec.out))
        (Path(spec.out) / "model.so").touch()
        specs.append(spec)
        record = JobRecord(id="j", run="r", name=spec.name, status=JobStatus.FINISHED, spec={}, result={})
        return RunOutcome(run="r", jobs=(record,), failure=None)

    monkeypatch.setattr(session, "tune", tune)
    monkeypatch.setattr(session, "load_bundle", lambda _folder: object())
    return specs


def test_one_session_tunes_as_many_models_as_one_likes(tuned: list[JobSpec], tmp_path: Path) -> None:
    one = Session()
    for number in range(4):
        one.from_model(write_network(tmp_path / f"net{number}.onnx")).autotune(trials=4)
    assert len({spec.out for spec in tuned}) == 4


def test_options_of_one_model_are_not_those_of_the_next(tuned: list[JobSpec], tmp_path: Path) -> None:
    model = write_network(tmp_path / "net.onnx")
    one = Session().from_model(model).autotune(trials=4, seed=7)
    one.from_model(model).build()
    assert [spec.seed for spec in tuned] == [7, 0]
