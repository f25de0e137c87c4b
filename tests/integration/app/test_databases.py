"""Records in and out of stock MetaSchedule databases."""

from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from support.commands import Workplace
from tuneloom.compiler.fast_import import load_tvm
from tuneloom.model import Measurement
from tuneloom.store import Store, open_store
from tuneloom.tuners.tvm.databases import RECORDS, WORKLOADS
from tuneloom.tuners.tvm.lowering.tasks import unpack


def exported(tuned: Any, folder: Path) -> Path:
    done = tuned.place.run("export", "last", "--to", "metaschedule", str(folder))
    assert done.returncode == 0, done.stderr
    assert f"16 records written to {folder}" in done.stdout
    return folder


def measured(store: Store, job: str, task_key: str) -> list[Measurement]:
    """What was measured of scheduled candidates; stock passes over a record without instructions."""
    trials = [record.trial for record in store.trials(job, task_key)]
    outcomes = [trial.outcome for trial in trials if trial.candidate.origin != "default"]
    return [outcome for outcome in outcomes if isinstance(outcome, Measurement)]


def test_stock_loads_what_was_exported_and_finds_the_best_record(tuned: Any, tmp_path: Path) -> None:
    folder = exported(tuned, tmp_path / "database")
    load_tvm()
    from tvm.s_tir.meta_schedule.database import JSONDatabase

    database = JSONDatabase(path_workload=str(folder / WORKLOADS), path_tuning_record=str(folder / RECORDS))
    assert len(database) == 16
    store = open_store(tuned.place.store)
    (job,) = store.jobs(store.runs()[-1].id)
    for planned in store.tasks(job.id):
        kernel = unpack(planned.task)
        record = database.query_tuning_record(kernel.module, kernel.target.to_tvm(), "main")
        means = [mean(outcome.seconds) for outcome in measured(store, job.id, planned.task.key)]
        assert mean(map(float, record.run_secs)) == pytest.approx(min(means), rel=1e-4)
        schedule = database.query_schedule(kernel.module, kernel.target.to_tvm(), "main")
        assert schedule is not None
    store.close()


def test_what_was_exported_comes_back_and_torn_lines_are_counted(
    tuned: Any, place: Workplace, tmp_path: Path
) -> None:
    folder = exported(tuned, tmp_path / "database")
    lines = (folder / RECORDS).read_text().splitlines()
    torn = [
        *lines,
        lines[0][: len(lines[0]) // 2],
        '[99, [[[], []], [1.0], {"kind": "llvm"}, []]]',
        "",
        "null",
    ]
    (folder / RECORDS).write_text("\n".join(torn))
    done = place.run("import", str(folder))
    assert done.returncode == 0, done.stderr
    tasks = {key for key, _ in tuned.place.trials()}
    assert f"16 records of {len(tasks)} tasks imported" in done.stdout
    assert "skipped: 2 × record can't be read" in done.stdout
    assert "skipped: 1 × record without its workload" in done.stdout
    assert set(place.trials()) == set(tuned.place.trials())


def test_a_folder_with_a_database_is_not_written_over(tuned: Any, tmp_path: Path) -> None:
    (tmp_path / WORKLOADS).write_text("precious")
    done = tuned.place.run("export", "last", "--to", "metaschedule", str(tmp_path))
    assert done.returncode == 2 and "already contains a database" in done.stderr
    assert (tmp_path / WORKLOADS).read_text() == "precious"
