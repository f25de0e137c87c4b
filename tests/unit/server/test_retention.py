"""What is too old goes, what a job needs stays, and a dry run changes nothing."""

import os
import sys
import time
from pathlib import Path

import pytest

from support.contracts.service import submission
from tuneloom.app.hosting.retention import Retention, collect
from tuneloom.cli.main import main
from tuneloom.store import JobStatus, Page, RunStatus, SpanRecord, Store, TenantLimits, open_store

DAY_S = 86_400.0
OLD = Retention(bundles_days=10, models_days=10, logs_days=10)


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A store whose contents are thirty days old: a job with model, bundle and log that has ended."""
    return str(tmp_path / "store.db")


def fill(place: str, status: JobStatus) -> str:
    """Upload a model, run a job of it to this status, long ago; returns the name of its run."""
    store = open_store(place, clock=lambda: time.time() - 30 * DAY_S)
    store.add_tenant("weavers", TenantLimits())
    digest = store.put_blob([b"model"], "x")
    store.use_blob(digest, f"model:weavers:{digest}")
    store.add_model("weavers", digest, "net.onnx", 5)
    run = store.submit_job(submission(model=digest), {})[0].id
    store.drop_blobs("x")
    lease = store.take_run(run, "executor", 30.0)
    bundle = store.put_blob([b"bundle"], f"bundle:{run}")
    store.keep_bundle(run, bundle, 6)
    span = SpanRecord(job="j", task="t", kind="build", resource="h", slots=1, ready_s=0, start_s=0, end_s=1)
    store.write_pages([Page(run=run, spans=(span,))])
    store.set_job(f"{run}.1", status)
    if status.ended:
        store.finish_run(run, RunStatus.FINISHED)
    else:
        store.release_run(lease, RunStatus.WAITING)
    store.close()
    return run


def kinds(store: Store, *, dry_run: bool = False) -> list[str]:
    return [removal.kind for removal in collect(store, OLD, dry_run=dry_run)]


def test_what_is_too_old_is_removed_with_its_files(place: str) -> None:
    run = fill(place, JobStatus.FINISHED)
    store = open_store(place)
    assert kinds(store) == ["bundle", "model", "log"]
    assert store.bundle(run) is None and store.models("weavers") == [] and store.spans(run) == []
    assert not list(Path(f"{place}.files").glob("??/*"))
    assert store.job(f"{run}.1").status is JobStatus.FINISHED, "what came out stays known"
    assert kinds(store) == []
    store.close()


def test_a_dry_run_tells_the_same_and_changes_nothing(place: str) -> None:
    run = fill(place, JobStatus.FINISHED)
    store = open_store(place)
    assert kinds(store, dry_run=True) == kinds(store, dry_run=True) == ["bundle", "model", "log"]
    assert store.bundle(run) is not None and len(store.models("weavers")) == 1
    store.close()


@pytest.mark.parametrize("status", [JobStatus.WAITING, JobStatus.PAUSED, JobStatus.RUNNING])
def test_nothing_goes_while_a_job_needs_it(place: str, status: JobStatus) -> None:
    fill(place, status)
    store = open_store(place)
    assert kinds(store) == []
    store.close()


def test_without_days_everything_is_kept(place: str) -> None:
    fill(place, JobStatus.FINISHED)
    store = open_store(place)
    assert list(collect(store, Retention())) == []
    store.close()


def test_a_file_that_nobody_owns_goes_unless_it_is_young(place: str) -> None:
    store = open_store(place)
    digest = store.put_blob([b"lost"], "somebody")
    path = Path(f"{place}.files") / digest[:2] / digest
    kept = path.read_bytes()
    store.drop_blobs("somebody")
    path.write_bytes(kept)
    assert kinds(store) == []
    os.utime(path, (0, 0))
    assert kinds(store) == ["file"] and not path.exists()
    store.close()


def test_the_command_says_what_it_would_remove(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = fill(place, JobStatus.FINISHED)
    settings = tmp_path / "serve.toml"
    settings.write_text("keep_bundles_days = 10\nkeep_logs_days = 10\n")
    words = ["tuneloom", "serve", "gc", "--config", str(settings), "--store", place]
    monkeypatch.setattr(sys, "argv", [*words, "--dry-run"])
    assert main() == 0
    assert capsys.readouterr().out == f"bundle  {run}\nlog  {run}\nwould remove 2 items, 0.0 MB\n"
    monkeypatch.setattr(sys, "argv", words)
    assert main() == 0
    assert capsys.readouterr().out.endswith("removed 2 items, 0.0 MB\n")
