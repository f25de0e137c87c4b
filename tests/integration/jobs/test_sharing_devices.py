"""Programs that are started side by side on one machine never measure at the same time."""

import os
import signal
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

import pytest

from support.commands import Workplace, ended_afterwards, wait_until
from support.locks import someone_waits
from support.warm import WarmInterpreter
from tuneloom.app.requests.job_specs import job_spec
from tuneloom.app.runs.executing.serving import MOST_RUNS
from tuneloom.app.runs.settings import RunSettings
from tuneloom.app.runs.submitting import submit
from tuneloom.engine.sharing.locks import core_lock, holding
from tuneloom.engine.sharing.reservations import Reservation
from tuneloom.store import RunStatus, Store, open_existing, open_store

EVERY = os.sched_getaffinity(0)
CORES = len(EVERY)
MODEL = "mock:tasks=2,size=200,build=0.01,profile=0.02"
SERVE = """
import sys
from tuneloom.cli.main import main
sys.executable = sys.argv.pop(1)
sys.exit(main())
"""
"""A program whose executors are started by another Python."""


def tune(trials: int, device_cores: int) -> list[str]:
    words = ["tune", MODEL, "--trials", str(trials), "--batch", "4"]
    return [*words, "--device-cores", str(device_cores)]


def submitted(store: Store, trials: int = 4) -> str:
    """A run that waits for an executor."""
    spec = job_spec({"name": "net", "model": MODEL, "trials": trials, "batch": 4})
    return submit(store, [spec], RunSettings()).id


def times_on_device(store: Store, run: str) -> list[tuple[float, float]]:
    """When stages of a run had the device, on the clock of the machine."""
    zero_s = store.notes(run)["clock"]["zero_s"]
    spans = [span for span in store.spans(run) if span.resource == "cpu0"]
    assert any(span.kind == "profile" for span in spans)
    return [(zero_s + span.start_s, zero_s + span.end_s) for span in spans]


def assert_taken_in_turn(used: list[tuple[float, float]]) -> None:
    assert all(before[1] <= after[0] for before, after in pairwise(sorted(used)))


two_cores = pytest.mark.skipif(CORES < 2, reason="one core is host and device, so builds share it")


@two_cores
@pytest.mark.parametrize("device_cores", sorted({(CORES + 1) // 2, CORES}))
def test_two_tunes_side_by_side_share_a_device_and_no_measurements_overlap(
    device_cores: int, tmp_path: Path, warm: WarmInterpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNELOOM_DEVICE_LOCKS", str(tmp_path / "locks"))
    places = [Workplace(folder=tmp_path / name, warm=warm) for name in ("a", "b")]
    with ExitStack() as ending:
        for place in places:
            place.folder.mkdir()
        here = ending.enter_context(closing(Reservation(EVERY, 0)))
        with holding([core_lock(core) for core in EVERY], alone=True, waits=lambda: None):
            programs = [
                ending.enter_context(ended_afterwards(place.start(*tune(40, device_cores))))
                for place in places
            ]
            assert wait_until(
                programs[0], lambda: len(here.others()) == 2
            )  # nobody ends before both are here
        ends = [program.communicate(timeout=900) for program in programs]
        assert [program.wait() for program in programs] == [0, 0], ends
    said = [error for _, error in ends if "is shared with" in error]
    assert said and all("measurements take turns" in error for error in said), ends
    used = []
    for place in places:
        with closing(open_existing(place.store)) as store:
            used += times_on_device(store, store.runs()[0].id)
    assert len(used) >= 80
    assert_taken_in_turn(used)


@two_cores
def test_two_executors_on_one_farm_file_never_measure_at_once(tmp_path: Path, warm: WarmInterpreter) -> None:
    farm, locks = tmp_path / "farm.toml", str(tmp_path / "locks")
    farm.write_text(f'engine = "local"\n[[devices]]\nkey = "cpu"\nkind = "cpu"\ncores = {CORES}\n')
    used = []
    with ExitStack() as ending:
        stores = [ending.enter_context(closing(open_store(tmp_path / f"{name}.db"))) for name in "ab"]
        runs = [submitted(store, trials=40) for store in stores]
        programs = []
        for name in "ab":
            place = Workplace(folder=tmp_path, warm=warm, environment={"TUNELOOM_DEVICE_LOCKS": locks})
            words = ("executor", "--until-idle", "--farm", str(farm), "--store", str(tmp_path / f"{name}.db"))
            programs.append(ending.enter_context(ended_afterwards(place.start(*words))))
        ends = [program.communicate(timeout=900) for program in programs]
        assert [program.wait() for program in programs] == [0, 0], ends
        for store, run in zip(stores, runs, strict=True):
            assert store.run(run).status is RunStatus.FINISHED
            used += times_on_device(store, run)
    assert len(used) >= 80
    assert_taken_in_turn(used)


@two_cores
def test_the_executors_of_one_server_never_measure_at_once(
    tmp_path: Path, warm: WarmInterpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNELOOM_DEVICE_LOCKS", str(tmp_path / "locks"))
    place = Workplace(folder=tmp_path, warm=warm)
    words = ("--executors", "2", "--port", "0", "--device-cores", str(CORES), "--store", place.store)
    (tmp_path / "home").mkdir()
    warm.write_commands(tmp_path)
    with closing(open_store(place.store)) as store, ExitStack() as ending:
        runs = [submitted(store) for _ in range(MOST_RUNS + 1)]  # more than one of them takes
        with holding([core_lock(core) for core in EVERY], alone=True, waits=lambda: None):
            server = ending.enter_context(
                ended_afterwards(place.start_python("-c", SERVE, str(tmp_path / "python"), "serve", *words))
            )
            assert wait_until(server, lambda: len(holders(store, runs)) == 2)
        assert wait_until(server, lambda: all(store.run(run).status is RunStatus.FINISHED for run in runs))
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=900)
        used = [time for run in runs for time in times_on_device(store, run)]
    assert len(used) >= 4 * len(runs)
    assert_taken_in_turn(used)


def holders(store: Store, runs: list[str]) -> set[str]:
    """Who has taken runs."""
    leases = [store.lease_of(run) for run in runs]
    return {lease.holder for lease in leases if lease is not None}


def test_a_tune_waits_for_a_core_that_another_process_measures_on_and_its_report_says_so(
    tmp_path: Path, warm: WarmInterpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNELOOM_DEVICE_LOCKS", str(tmp_path / "locks"))
    place = Workplace(folder=tmp_path, warm=warm)
    last = core_lock(max(EVERY))
    with holding([last], alone=True, waits=lambda: None):
        program = place.start(*tune(4, 1))
        place_taken = tmp_path / "locks"
        assert wait_until(program, lambda: someone_waits(place_taken, last))
    with ended_afterwards(program):
        _, error = program.communicate(timeout=900)
    assert program.wait() == 0, error
    with closing(open_existing(place.store)) as store:
        (run,) = store.runs()
        (device,) = (each for each in store.notes(run.id)["resources"] if each["name"] == "cpu0")
    assert device["waits"] >= 1 and device["waited_s"] > 0
    place.run("report", run.id, "--out", "report.html")
    assert "waited for the device" in (tmp_path / "report.html").read_text()
