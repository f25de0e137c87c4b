"""One bad job costs that job alone, and times of jobs count from their submission, whoever executes them."""

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from support.models.onnx_files import network_input, write_network
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.executing.bookkeeping import Book
from tuneloom.app.runs.executing.executor import Interrupted
from tuneloom.app.runs.executing.held_run import HeldRun
from tuneloom.app.runs.executing.in_process import resume, tune
from tuneloom.app.runs.files import files_of, kept_files, localised
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.runs.submitting import submit
from tuneloom.app.runs.view import RunView
from tuneloom.model import JobSpec
from tuneloom.store import JobStatus, Page, RunStatus, SpanRecord, Store, open_store

pytestmark = pytest.mark.integration


def small(name: str, **values: object) -> JobSpec:
    return job_spec({"name": name, "model": "mock:size=8", "trials": 6, **values})


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def test_a_bad_spec_in_the_store_ends_its_own_job_alone(place: str) -> None:
    with closing(open_store(place)) as store:
        jobs = [("bad", {"colour": "blue"}), ("good", small("good").to_json())]
        jobs.append(("strange", small("strange").to_json() | {"tuner": "nonesuch"}))
        run = store.submit_run("tune", jobs).id
    outcome = resume(run, place)
    status = {job.name: job.status for job in outcome.jobs}
    assert status == {"bad": JobStatus.FAILED, "good": JobStatus.FINISHED, "strange": JobStatus.FAILED}
    reasons = {job.name: job.result.get("failure", "") for job in outcome.jobs}
    assert "its description can't be used" in reasons["bad"]
    assert "no tuner named 'nonesuch'" in reasons["strange"]


class EndsEarly:
    """A display that behaves like a user who presses Ctrl-C after two trials."""

    every_s = 0.0

    def show(self, view: RunView) -> None:
        if any(job.spent >= 2 for job in view.jobs):
            raise KeyboardInterrupt


def test_the_clock_of_a_resumed_run_goes_on_where_it_stopped(place: str) -> None:
    with pytest.raises(Interrupted):
        tune([small("a", trials=40, model="mock:size=80")], RunSettings(store=place), display=EndsEarly())
    with closing(open_store(place)) as store:
        run = store.run("last").id
        before_s = max(span.end_s for span in store.spans(run))
        earlier = len(store.spans(run))
    resume(run, place)
    with closing(open_store(place)) as store:
        spans = store.spans(run)
    assert min(span.start_s for span in spans[earlier:]) >= before_s


def held(store: Store, run: str, now_s: float) -> HeldRun:
    lease = store.take_run(run, "me", 30.0)
    book = Book(store, run, now_s)
    return HeldRun(store=store, lease=lease, book=book, lanes=1, workers=1, cores_of=lambda _key: 1)


def idle(run: str) -> RunView:
    return RunView(run=run, policy="load-aware", at_s=0.0, resources=(), jobs=())


def test_arrivals_and_deadlines_count_from_the_submission_of_a_job(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    store = open_store(place, clock=lambda: clock[0])
    monkeypatch.setattr("time.time", lambda: clock[0])
    run = store.submit_run("tune", []).id
    clock[0] += 500
    store.add_job(run, "late", small("late", arrival_s=60, deadline_s=600).to_json())
    clock[0] += 20
    taken = held(store, run, now_s=7.0)
    (record,) = taken.new_jobs()
    program = taken.take(record, taken.expect(record, now_s=7.0))
    assert taken.due_s[record.id] == pytest.approx(7 + 60 - 20)
    assert program.ticket.deadline_s == pytest.approx(7 + 600 - 20)
    store.close()


def test_a_model_that_was_changed_or_moved_is_used_as_it_was_submitted(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path / "home"))
    model = write_network(tmp_path / "net.onnx")
    content = model.read_bytes()
    with closing(open_store(place)) as store:
        spec = job_spec({"name": "net", "model": str(model), "trials": 4})
        run = submit(store, [spec], RunSettings()).id
        (job,) = store.jobs(run)
        kept = JobSpec.from_json(json.loads(json.dumps(dict(job.spec))))
        assert localised(store, kept).model == str(model)
        model.write_bytes(b"something else")
        found = localised(store, kept)
        assert found.model != str(model) and Path(found.model).read_bytes() == content
        model.unlink()
        assert Path(localised(store, kept).model).read_bytes() == content


@pytest.mark.parametrize("model", ["net.onnx", "zoo:resnet18"])
@pytest.mark.parametrize("samples", ["x.npz", "elsewhere/x.npz"])
def test_samples_are_kept_with_a_job_wherever_they_lay(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, samples: str
) -> None:
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path / "home"))
    (tmp_path / "elsewhere").mkdir()
    given = tmp_path / samples
    np.savez(given, x=network_input())
    content = given.read_bytes()
    source = model if model.startswith("zoo:") else str(write_network(tmp_path / model))
    fields = {"name": "net", "model": source, "trials": 4, "dtype": "int8", "samples": str(given)}
    with closing(open_store(place)) as store, kept_files(store, [job_spec(fields)]) as (kept,):
        given.unlink()
        found = localised(store, kept)
        assert Path(found.samples or "").read_bytes() == content
        reads = files_of(found)
        assert reads is not None
        paths = {str(Path(reads.folder) / name) for name in reads.digests}
        assert paths == {found.samples} | ({found.model} if source == str(tmp_path / model) else set())
        assert localised(store, found) == found


def test_files_of_a_run_go_with_its_end(place: str, tmp_path: Path) -> None:
    model = write_network(tmp_path / "net.onnx")
    with closing(open_store(place)) as store:
        spec = job_spec({"name": "net", "model": str(model), "trials": 4})
        run = submit(store, [spec], RunSettings()).id
        (digest,) = JobSpec.from_json(dict(store.jobs(run)[0].spec)).files.values()
        assert store.has_blob(digest)
        taken = held(store, run, now_s=0.0)
        store.set_job(f"{run}.1", JobStatus.CANCELLED)
        assert taken.close(idle(run))
        assert store.run(run).status is RunStatus.FINISHED and not store.has_blob(digest)


def test_a_wish_that_comes_while_a_run_ends_is_never_missed(place: str) -> None:
    with closing(open_store(place)) as store:
        run = store.submit_run("tune", []).id
        taken = held(store, run, now_s=0.0)
        store.add_job(run, "late", small("late").to_json())
        assert not taken.close(idle(run))
        assert store.run(run).status is RunStatus.RUNNING
        assert [record.name for record in taken.new_jobs()] == ["late"]


def test_spans_are_kept_on_the_clock_of_the_run(place: str) -> None:
    with closing(open_store(place)) as store:
        run = store.submit_run("tune", []).id
        span = SpanRecord(job="j", task="t", kind="build", resource="host", start_s=1.0, end_s=30.0)
        store.write_pages([Page(run=run, spans=(span,))])
        assert Book(store, run, began_s=100.0).on_run_clock(105.0) == pytest.approx(35.0)
