"""A second model that starts from the first one's records, with real TVM and real processes."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.commands import Workplace
from support.models.onnx_files import write_network
from support.warm import WarmInterpreter
from tuneloom.store import open_store


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, warm: WarmInterpreter) -> Workplace:
    """A workplace whose bank knows one small network."""
    place = Workplace(folder=tmp_path_factory.mktemp("reuse"), warm=warm)
    write_network(place.folder / "first.onnx", channels=16, size=8)
    write_network(place.folder / "second.onnx", channels=32, size=12)
    done = place.run("tune", "first.onnx", "--trials", "12", "--batch", "4", "--json")
    assert done.returncode == 0, done.stderr
    return place


def tuned(place: Workplace, *words: str) -> dict[str, Any]:
    done = place.run("tune", *words, "--json")
    assert done.returncode == 0, done.stderr
    job: dict[str, Any] = json.loads(done.stdout)["jobs"][0]
    return job


def origins(place: Workplace) -> list[str]:
    """Who proposed the trials of the last run."""
    store = open_store(place.store)
    try:
        (job,) = store.jobs(store.run("last").id)
        return [record.trial.candidate.origin.partition(":")[0] for record in store.trials(job.id)]
    finally:
        store.close()


def plans(place: Workplace) -> list[dict[str, Any]]:
    store = open_store(place.store)
    try:
        (job,) = store.jobs(store.run("last").id)
        return [dict(planned.plan) for planned in store.tasks(job.id)]
    finally:
        store.close()


def test_a_plan_is_printed_without_tuning(place: Workplace) -> None:
    before = len(place.trials())
    done = place.run("plan", "second.onnx", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert "transfer" in [task["action"] for task in plan["tasks"]]
    assert all(task["reason"] for task in plan["tasks"])
    assert len(place.trials()) == before
    told = place.run("plan", "first.onnx")
    assert "tuned before: starts from record" in told.stdout


def test_transfer_only_measures_what_it_is_given_and_keeps_where_it_came_from(place: Workplace) -> None:
    job = tuned(place, "second.onnx", "--reuse", "transfer-only", "--out", "fast")
    assert job["status"] == "finished"
    assert {"default", "transfer"} <= set(origins(place)) <= {"default", "transfer", "guess"}
    assert any(plan.get("gifts") for plan in plans(place))
    rows = json.loads((place.folder / "fast" / "schedules.json").read_text())
    assert all(row["origin"] == "guess" or row["origin"].startswith("transfer:") for row in rows)


def test_a_tuned_model_goes_on_from_its_own_records(place: Workplace) -> None:
    tuned(place, "first.onnx", "--trials", "6", "--batch", "4")
    assert "continue" in [plan["action"] for plan in plans(place)]
    assert origins(place).count("transfer") >= 1


def test_nothing_is_borrowed_when_reuse_is_off(place: Workplace) -> None:
    tuned(place, "second.onnx", "--trials", "6", "--reuse", "off")
    assert {"default"} <= set(origins(place)) <= {"default", "guess", "search"}
    assert plans(place) and not any(plans(place))


def test_a_damaged_record_does_not_stop_a_job(place: Workplace, tmp_path: Path) -> None:
    import shutil
    import sqlite3

    copy = Workplace(folder=tmp_path, warm=place.warm)
    (tmp_path / "home").mkdir()
    shutil.copy(place.store, copy.store)
    shutil.copy(place.folder / "second.onnx", tmp_path / "second.onnx")
    with sqlite3.connect(copy.store) as database:
        database.execute("UPDATE trials SET configuration = x'01ffff' WHERE origin <> 'default'")
    database.close()
    assert tuned(copy, "second.onnx", "--trials", "6")["status"] == "finished"
    assert {"default"} <= set(origins(copy)) <= {"default", "guess", "search"}
