"""Records that come with the program."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from support.jobs.small import small_spec, small_task
from support.samples.traces import tiled_trace
from tuneloom.app.bank import starter
from tuneloom.app.bank.files import FORMAT, VERSION, export_bank
from tuneloom.app.kinds.finding import kind_named
from tuneloom.app.reuse.job_reuse import JobReuse
from tuneloom.errors import BudgetError
from tuneloom.model import Candidate, Measurement, TaskSpace, Trial
from tuneloom.store import Provenance, Store, open_store

TASK = small_task("a")
MADE = Provenance(
    family="llvm-128", target="{}", device_key="starter-neoverse-n1", measuring="r3", tvm_version="0.27"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A starter bank with one record."""
    monkeypatch.delenv(starter.SWITCH, raising=False)
    with open_store(tmp_path / "made.db") as store:
        job = store.add_job(store.create_run("tune").id, "job").id
        store.add_tasks(job, [TASK], family=MADE.family, target=MADE.target, tvm_version=MADE.tvm_version)
        candidate = Candidate(key="c", configuration=tiled_trace([(4, 2)]), origin="starter")
        store.add_trial(job, TASK.key, Trial(candidate=candidate, outcome=Measurement(seconds=(1e-3,))), MADE)
    export_bank(tmp_path / "bank.jsonl", str(tmp_path / "made.db"))
    with gzip.open(tmp_path / "llvm-128.jsonl.gz", "wb") as file:
        file.write((tmp_path / "bank.jsonl").read_bytes())
    return tmp_path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "own.db") as own:
        yield own


def test_records_are_imported_once_for_the_family_that_needs_them(folder: Path, store: Store) -> None:
    assert starter.provide(store, "llvm-512", folder) == 0
    assert starter.provide(store, "llvm-128", folder) == 1
    assert starter.provide(store, "llvm-128", folder) == 0
    assert len(store.workload_trials(TASK.key, "llvm-128", 9)) == 1


def test_a_user_can_do_without_them(folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(starter.SWITCH, "off")
    assert starter.provide(store, "llvm-128", folder) == 0


def test_their_import_is_not_the_last_run(folder: Path, store: Store) -> None:
    tuned = store.create_run("tune net.onnx").id
    starter.provide(store, "llvm-128", folder)
    assert store.run("last").id == tuned


@pytest.mark.parametrize(("trials", "known"), [(0, True), (8, False)])
def test_their_times_count_only_where_nothing_is_measured(
    folder: Path, store: Store, trials: int, known: bool
) -> None:
    starter.provide(store, "llvm-128", folder)
    reuse = JobReuse(store, "job.1", replace(small_spec(trials), reuse="auto"))
    reuse.look(("llvm-128",), [TASK], [TaskSpace(task_key=TASK.key, sketches=())])
    assert (reuse.best_known(TASK) is not None) is known


@pytest.mark.parametrize("kind", ["mock", "kernel"])
def test_a_job_without_trials_is_refused_where_nothing_is_known(kind: str) -> None:
    with pytest.raises(BudgetError, match=f"trials of a {kind} job must be at least 1, got 0"):
        kind_named(kind).require(small_spec(0))


def test_every_file_states_licence_and_provenance_and_all_are_small() -> None:
    files = sorted(starter.FOLDER.glob("*.gz"))
    for path in files:
        with gzip.open(path, "rt") as file:
            head = json.loads(file.readline())
        assert (head["format"], head["version"], head["licence"]) == (FORMAT, VERSION, "Apache-2.0")
        assert head["machine"] and head["networks"] and head["family"] == path.name.partition(".")[0]
    assert files and sum(path.stat().st_size for path in files) <= 10 << 20
