"""What the store knows of a run becomes the report's data, and the commands show it."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.contracts.store import CONV, DENSE, HERE, failed, job_with_tasks, measured
from tuneloom.app.reports.reporting import report_data, write_report
from tuneloom.cli.local import report as report_command
from tuneloom.cli.local import runs as runs_command
from tuneloom.errors import OutputError, StoreError
from tuneloom.model import Candidate, Failure, FailureKind, Measurement, Task, Trial
from tuneloom.report import DriftPoint, Gift, ResourceInfo, render_report
from tuneloom.store import JobStatus, Page, RunStatus, SpanRecord, Store, open_store


def parser() -> argparse.ArgumentParser:
    whole = argparse.ArgumentParser()
    subparsers = whole.add_subparsers()
    report_command.add_parser(subparsers)
    runs_command.add_parser(subparsers)
    return whole


def command(*words: str) -> int:
    options = parser().parse_args(words)
    return int(options.func(options))


def tuned(store: Store) -> str:
    """A finished run with everything a report reads; returns its id."""
    job = job_with_tasks(store)
    run = store.job(job).run
    store.set_job(job, JobStatus.RUNNING)
    store.add_trial(job, CONV.key, measured("d", 4.0, origin="default"), HERE)
    store.add_trial(job, DENSE.key, measured("d", 1.0, origin="default"), HERE)
    store.add_trial(job, CONV.key, failed("x", FailureKind.RUN_TIMEOUT, "too slow"), HERE)
    store.add_trial(job, CONV.key, measured("y", 2.0, origin="donor"), HERE)
    store.set_plan(job, CONV.key, {"representative": CONV.key})
    gift = {"donor": CONV.key, "source": "here", "after_s": 0.5, "used": True}
    store.set_plan(job, DENSE.key, {"representative": CONV.key, "gifts": [gift]})
    span = SpanRecord(job=job, task=CONV.key, kind="build", resource="host", start_s=0.0, end_s=9.0)
    store.write_pages([Page(run=run, spans=(span,))])
    store.set_note(run, "resources", [{"name": "host", "slots": 2}, {"name": "cpu:1", "device_key": "cpu"}])
    store.set_note(run, "canary", [[1.0, 1.01]])
    store.set_note(run, "versions", {"tvm": "0.27", "patched": True})
    store.set_note(run, "seed", 42)
    kernels = {CONV.key: {"before_s": 4.1, "after_s": 2.1}}
    store.set_job(
        job, JobStatus.FINISHED, {"latency_before_s": 17.5, "latency_after_s": 9.5, "kernels": kernels}
    )
    store.finish_run(run, RunStatus.FINISHED)
    return run


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def store(place: str) -> Iterator[Store]:
    opened = open_store(place)
    yield opened
    opened.close()


@pytest.fixture
def run(store: Store) -> str:
    return tuned(store)


def test_models_and_tasks_come_with_their_times(store: Store, run: str) -> None:
    data = report_data(store, run)
    (model,) = data.models
    assert (model.before_s, model.after_s, model.trials, model.failed) == (17.5, 9.5, 4, 1)
    assert (model.target, model.device, model.status) == (HERE.target, "cpu", "finished")
    assert [point.best_s for point in model.progress] == [17.0, 9.0]
    conv, dense = data.tasks
    assert (conv.before_s, conv.after_s, conv.failed_at) == (4.1, 2.1, (2,))
    assert (dense.before_s, dense.after_s) == (1.0, 1.0)


def test_notes_and_plans_become_sections(store: Store, run: str) -> None:
    data = report_data(store, run)
    assert data.resources == (
        ResourceInfo(name="host", slots=2),
        ResourceInfo(name="cpu:1", device_key="cpu"),
    )
    assert data.drift == (DriftPoint(at_s=1.0, ratio=1.01),)
    assert [(fact.name, fact.value) for fact in data.facts] == [
        ("TVM", HERE.tvm_version),
        ("target", HERE.target),
        ("device", "cpu"),
        ("measuring rules", HERE.measuring),
        ("versions: tvm", "0.27"),
        ("versions: patched", "yes"),
        ("seed", "42"),
    ]
    assert [cluster.members for cluster in data.clusters] == [(CONV.key, DENSE.key)]
    assert data.gifts == (
        Gift(donor=CONV.key, receiver=DENSE.key, source="here", before_s=1.0, after_s=0.5, used=True),
    )
    assert (data.seconds, data.called(CONV.key)) == (9.0, CONV.name)
    assert [failure.kind for failure in data.failures] == ["run_timeout"]


def kernel_job(store: Store) -> str:
    """A job of a run of its own that tuned a kernel with knobs: one trial failed, one did not."""
    run = store.create_run("kernel tune")
    job = store.add_job(run.id, "conv", {"tuner": "kernel"}).id
    task = Task(key="kernel:conv", name="conv", kernel_class="kernel")
    store.add_tasks(job, [task], family="kernel-cpu", target="cpu")
    for knobs, outcome in (
        ('{"a": 1, "b": 3}', Failure(kind=FailureKind.BUILD_ERROR)),
        ('{"a": 2, "b": 4}', Measurement(seconds=(0.5,))),
    ):
        trial = Trial(candidate=Candidate(key=knobs, configuration=knobs), outcome=outcome)
        store.add_trial(job, task.key, trial, HERE)
    return job


def test_what_a_kernel_job_learned_becomes_maps(store: Store) -> None:
    job = kernel_job(store)
    pair = {"x_knob": "a", "y_knob": "b", "x_values": [1, 2], "y_values": [3], "cells": [[1, 3, 0, 2, 0.1]]}
    learned = {"pairs": [pair], "importance": {"a": 0.75}}
    store.set_job(job, JobStatus.FINISHED, {"best": {"a": 2}, "best_s": 0.5, "validity": learned})
    data = report_data(store, store.job(job).run)
    (validity,) = data.validity
    assert (validity.kernel, validity.importance) == ("conv", (("a", 0.75),))
    cell = validity.pairs[0].cells[0]
    assert (cell.x, cell.invalid, cell.predicted) == ("1", 2, 0.1)
    assert (data.models[0].after_s, data.models[0].best) == (0.5, "a = 2")
    assert "500 ms" in render_report(data) and "with a = 2" in render_report(data)


def test_an_interrupted_kernel_job_still_shows_what_failed_where(store: Store) -> None:
    (validity,) = report_data(store, store.job(kernel_job(store)).run).validity
    (pair,) = validity.pairs
    assert {(cell.x, cell.y): (cell.valid, cell.invalid) for cell in pair.cells} == {
        ("1", "3"): (0, 1),
        ("2", "4"): (1, 0),
    }


def test_models_have_no_maps_of_knobs(store: Store, run: str) -> None:
    assert report_data(store, run).validity == ()


def test_a_run_without_anything_has_a_report(store: Store) -> None:
    run = store.create_run("tune")
    assert report_data(store, run.id).models == ()


def test_the_report_command_writes_a_page(
    place: str, run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    assert command("report", run, "-o", str(out), "--store", place) == 0
    assert capsys.readouterr().out == f"report on {run} written to {out}\n"
    assert out.read_text().startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir() if "html" in path.name) == ["page.html"]


def test_a_report_that_can_not_be_written_leaves_nothing(place: str, run: str, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"can't write .*nowhere/page\.html: No such file"):
        write_report(run, tmp_path / "nowhere" / "page.html", place)
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(OutputError, match="choose another place with -o"):
        write_report(run, tmp_path / "folder.html", place)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_report_on_an_unknown_run_names_the_known(place: str, run: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"the newest are {run}"):
        command("report", "nonesuch", "-o", str(tmp_path / "x.html"), "--store", place)


def test_runs_are_listed_for_programs(place: str, run: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("runs", "--json", "--store", place) == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["id"], listed["status"], listed["jobs"], listed["trials"]) == (run, "finished", 1, 4)


def test_runs_are_lines_with_tabs_when_nobody_looks(
    place: str, run: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command("runs", "--store", place) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.split("\t")[:2] == [run, "finished"]


def test_runs_are_a_table_on_a_terminal(
    place: str, run: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert command("runs", "--store", place) == 0
    printed = capsys.readouterr().out
    assert run in printed and "started" in printed


def test_no_runs_says_how_to_start_one(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    open_store(place).close()
    assert command("runs", "--store", place) == 0
    assert "`tuneloom tune MODEL` starts one" in capsys.readouterr().out
