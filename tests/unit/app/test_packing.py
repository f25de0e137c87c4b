"""Bundles are packed beside the conductor: a large one keeps no other run waiting."""

import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tuneloom.app.hosting import bundles
from tuneloom.app.hosting.bundles import KEPT, with_folder
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.executing.executor import Executor
from tuneloom.app.runs.executing.heartbeat import Heartbeat
from tuneloom.engine.calls import Returned
from tuneloom.engine.machine import Fleet, Offer
from tuneloom.model import Device, Host
from tuneloom.store import JobStatus, RunStatus, Store, open_store
from tuneloom.testing.engines.scripted import ScriptedEngine

HERE = Fleet(
    offers=(Offer(resource=Host(name="host", slots=2)), Offer(resource=Device(name="cpu0", key="cpu")))
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path))
    with closing(open_store()) as opened:
        yield opened


def executor_of(store: Store, *names: str) -> tuple[Executor, list[str]]:
    """An executor whose runs have one job each, of which the first has made a bundle for the store."""
    jobs = []
    for name in names:
        spec = job_spec({"name": name, "model": "mock:size=8", "trials": 4})
        jobs.append(f"{store.submit_run('tune', [(name, spec.to_json())]).id}.1")
    engine = ScriptedEngine(lambda _call: Returned(value=None))
    executor = Executor(store, engine, HERE, "load-aware", Heartbeat(open_store), most_runs=9)
    executor.beat(1.0)
    run = jobs[0].rpartition(".")[0]
    program = executor.runs[run].programs[jobs[0]]
    program.spec = with_folder(replace(program.spec, out=KEPT), run)
    folder = Path(program.spec.out or "")
    folder.mkdir(parents=True)
    (folder / "model.so").write_bytes(b"code")
    return executor, jobs


def packed_after(go_on: threading.Event, folder: Path) -> Iterator[bytes]:
    assert go_on.wait(300), "nothing else went on while the bundle was packed"
    yield (folder / "model.so").read_bytes()


def test_another_run_ends_while_a_bundle_is_packed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    executor, (large, other) = executor_of(store, "large", "other")
    go_on, run = threading.Event(), executor.runs[large_run := large.rpartition(".")[0]]
    monkeypatch.setattr(bundles, "packed", lambda folder: packed_after(go_on, folder))
    executor.listener.job_ended(large, cancelled=False)
    executor.listener.job_ended(other, cancelled=False)
    executor.beat(2.0)
    assert [store.job(job).status for job in (large, other)] == [JobStatus.RUNNING, JobStatus.FINISHED]
    assert store.run(other.rpartition(".")[0]).status is RunStatus.FINISHED
    view = store.view(large_run)
    assert view is not None and view["jobs"][0]["stage"] == "packing"
    go_on.set()
    run.packing[large].result()
    executor.beat(3.0)
    bundle = store.bundle(large_run)
    assert store.job(large).status is JobStatus.FINISHED
    assert bundle is not None and (b"".join(store.blob(bundle.digest)), bundle.size_bytes) == (b"code", 4)


def test_an_executor_that_ends_waits_for_the_bundles_it_packs(store: Store) -> None:
    executor, (job,) = executor_of(store, "large")
    executor.listener.job_ended(job, cancelled=False)
    executor._runs.give_back(RunStatus.WAITING, "given back")
    assert store.job(job).status is JobStatus.FINISHED and store.bundle(job.rpartition(".")[0]) is not None


def test_a_bundle_that_can_not_be_packed_costs_its_run_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_folder: Path) -> Iterator[bytes]:
        raise OSError(28, "no space left")

    executor, (large, other) = executor_of(store, "large", "other")
    run = large.rpartition(".")[0]
    packing = executor.runs[run].packing
    monkeypatch.setattr(bundles, "packed", full)
    executor.listener.job_ended(large, cancelled=False)
    packing[large].exception()
    executor.beat(2.0)
    assert "no space left" in str(executor.failures[run])
    assert (store.run(run).status, list(executor.runs)) == (RunStatus.INTERRUPTED, [other.rpartition(".")[0]])


def test_what_a_dead_executor_left_of_a_bundle_is_not_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNELOOM_HOME", str(tmp_path))
    spec = job_spec({"name": "net", "model": "mock:size=8", "trials": 4})
    (left := tmp_path / "bundles" / "amber-heron-42").mkdir(parents=True)
    (left / "model.so").write_bytes(b"old")
    assert with_folder(replace(spec, out=KEPT), "amber-heron-42").out == str(left) and not left.exists()
