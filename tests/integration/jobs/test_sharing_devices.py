"""Two programs that are started side by side on one machine never measure at the same time."""

import fcntl
import os
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tuneloom.engine.sharing.locks import core_lock, holding
from tuneloom.store import open_existing
from tuneloom.testing.commands import Workplace, ended_afterwards, wait_until
from tuneloom.testing.warm import WarmInterpreter

CORES = len(os.sched_getaffinity(0))
MODEL = "mock:tasks=2,size=200,build=0.01,profile=0.02"


def tune(trials: int, device_cores: int) -> list[str]:
    words = ["tune", MODEL, "--trials", str(trials), "--batch", "4"]
    return [*words, "--device-cores", str(device_cores)]


def note_of(place: str, run: str, name: str) -> Any:
    with closing(open_existing(place)) as store:
        return store.notes(run)[name]


def times_on_device(place: str) -> list[tuple[float, float]]:
    """When stages had the device, on the clock of the machine."""
    with closing(open_existing(place)) as store:
        (run,) = store.runs()
        clock = store.notes(run.id)["clock"]
        spans = [span for span in store.spans(run.id) if span.resource == "cpu0"]
        assert any(span.kind == "profile" for span in spans)
        return [(clock["zero_s"] + span.start_s, clock["zero_s"] + span.end_s) for span in spans]


@pytest.mark.skipif(CORES < 2, reason="one core is host and device, so builds share it")
@pytest.mark.parametrize("device_cores", sorted({(CORES + 1) // 2, CORES}))
def test_two_tunes_side_by_side_share_a_device_and_no_measurements_overlap(
    device_cores: int, tmp_path: Path, warm: WarmInterpreter
) -> None:
    places = [Workplace(folder=tmp_path / name, warm=warm) for name in ("a", "b")]
    locks = str(tmp_path / "locks")
    with ExitStack() as ending:
        for place in places:
            place.folder.mkdir()
        programs = [
            ending.enter_context(
                ended_afterwards(place.start(*tune(40, device_cores), TUNELOOM_DEVICE_LOCKS=locks))
            )
            for place in places
        ]
        ends = [program.communicate(timeout=900) for program in programs]
        assert [program.wait() for program in programs] == [0, 0], ends
    said = [error for _, error in ends if "is shared with" in error]
    assert said and all("measurements take turns" in error for error in said), ends
    used = sorted(time for place in places for time in times_on_device(place.store))
    assert len(used) >= 80
    assert all(before[1] <= after[0] for before, after in pairwise(used))


def test_a_tune_waits_for_a_core_that_another_process_measures_on_and_its_report_says_so(
    tmp_path: Path, warm: WarmInterpreter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNELOOM_DEVICE_LOCKS", str(tmp_path / "locks"))
    place = Workplace(folder=tmp_path, warm=warm)
    last = core_lock(max(os.sched_getaffinity(0)))
    with holding([last], alone=True, waits=lambda: None):
        program = place.start(*tune(4, 1))
        place_taken = tmp_path / "locks"
        assert wait_until(program, lambda: _someone_waits(place_taken, last))
    with ended_afterwards(program):
        _, error = program.communicate(timeout=900)
    assert program.wait() == 0, error
    with closing(open_existing(place.store)) as store:
        (run,) = store.runs()
        (device,) = (each for each in store.notes(run.id)["resources"] if each["name"] == "cpu0")
    assert device["waits"] >= 1 and device["waited_s"] > 0
    place.run("report", run.id, "--out", "report.html")
    assert "waited for the device" in (tmp_path / "report.html").read_text()


def _someone_waits(folder: Path, lock: str) -> bool:
    """Whether a process holds the place of the next one at a lock."""
    for path in folder.glob(f"*/locks/{lock}.next"):
        with path.open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False
