"""Processes of a machine that know nothing of each other measure on different cores, or in turn."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from tuneloom.app.reports.notes import shared_facts
from tuneloom.app.runs.executing.bookkeeping import ResourceList
from tuneloom.engine.calls import Call
from tuneloom.engine.machine import Offer
from tuneloom.engine.sharing.locks import holding, shared_folder
from tuneloom.engine.sharing.reservations import Neighbour, Reservation, chosen_cores
from tuneloom.engine.workers import Running, keep_quiet
from tuneloom.errors import EngineError
from tuneloom.model import Device
from tuneloom.report import Fact

FOUR = range(4)
RESERVE = """
from tuneloom.engine.sharing.reservations import Reservation
mine = Reservation(range(4), 1)
print(*mine.cores, flush=True)
input()
"""


@pytest.fixture(autouse=True)
def own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNELOOM_DEVICE_LOCKS", str(tmp_path / "locks"))


def others(*devices: set[int]) -> Sequence[Neighbour]:
    return [Neighbour(by="another", cores=frozenset(cores), locks=frozenset()) for cores in devices]


@pytest.mark.parametrize(
    ("every", "wanted", "taken", "chosen"),
    [
        (FOUR, 1, [], {3}),
        (FOUR, 1, [{3}], {2}),
        (FOUR, 2, [{3}], {1, 2}),
        (FOUR, 1, [{3}, {2}, {1}], {3}),
        (FOUR, 1, [{3}, {3}, {2}, {1}], {2}),
        (FOUR, 2, [{2, 3}], {2, 3}),
        (FOUR, 4, [{3}], {0, 1, 2, 3}),
        (range(2), 1, [{1}], {1}),
        (range(2), 2, [], {0, 1}),
        ([5], 1, [], {5}),
        (FOUR, 0, [{3}], set()),
    ],
)
def test_cores_that_nobody_measures_on_come_first_as_long_as_one_is_left_to_build_on(
    every: Sequence[int], wanted: int, taken: list[set[int]], chosen: set[int]
) -> None:
    assert chosen_cores(every, wanted, others(*taken)) == chosen


def test_the_second_reservation_has_other_cores_and_a_closed_one_leaves_them() -> None:
    first, second = Reservation(FOUR, 1), Reservation(FOUR, 1)
    assert (first.cores, second.cores) == ({3}, {2})
    assert [other.cores for other in second.others()] == [{3}]
    first.close()
    assert second.others() == [] and Reservation(FOUR, 1).cores == {3}


def test_where_no_cores_are_left_they_are_shared_and_each_knows_with_whom() -> None:
    first, second = Reservation(range(2), 1), Reservation(range(2), 1)
    assert first.cores == second.cores == {1}
    assert f"(pid {os.getpid()} on " in first.shared_with(["core-1"])
    assert first.shared_with(["core-0"]) == ""
    second.note(["core-1", "gpu-x"])
    assert first.shared_with(["gpu-x"]), "it has more devices now"


def test_a_process_that_was_killed_has_reserved_nothing() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", RESERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None and process.stdout.readline() == "3\n"
        second = Reservation(FOUR, 1)
        assert second.cores == {2}
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert second.others() == [] and Reservation(FOUR, 1).cores == {3}


def test_what_is_not_measured_keeps_off_cores_on_which_others_measure() -> None:
    mine, _other = Reservation(FOUR, 1), Reservation(FOUR, 1)
    build = Call(function="build", cores=frozenset({0, 1, 2}))
    assert mine.fitted(build).cores == {0, 1}
    measure = Call(function="profile", cores=mine.cores, alone=True, locks=("core-3",))
    assert mine.fitted(measure) is measure


def test_what_has_no_other_cores_takes_turns_with_those_who_measure_there() -> None:
    mine, _other = Reservation(range(2), 1), Reservation(range(2), 2)
    build = mine.fitted(Call(function="build", cores=frozenset({0})))
    assert (build.cores, build.locks, build.alone) == ({0}, ("core-0",), False)


def test_a_call_with_locks_never_pauses_since_it_would_keep_them() -> None:
    measure = Running("a", Call(function="f", cores=frozenset({0}), alone=True, locks=("core-0",)), 0.0)
    build = Running("b", Call(function="g", cores=frozenset({0}), locks=("core-0",)), 0.0)
    workers = [Standing(running) for running in (measure, build)]
    keep_quiet(workers, 1.0)  # type: ignore[arg-type]
    assert [worker.paused_at_s for worker in workers] == [None, None]


class Standing:
    """A worker whose process does not matter."""

    def __init__(self, current: Running) -> None:
        self.current = current
        self.paused_at_s: float | None = None

    def pause(self, now_s: float) -> None:
        self.paused_at_s = now_s


def test_the_limit_of_a_call_does_not_run_while_it_waits() -> None:
    running = Running("a", Call(function="f", timeout_s=5.0), 100.0)
    assert running.due_s == 105.0
    running.waiting = True
    assert running.due_s is None


def test_whoever_waits_for_a_lock_gets_it_before_the_one_who_had_it_gets_it_again() -> None:
    turns: list[str] = []
    second_waits, first_wants_again = Event(), Event()

    def second() -> None:
        with holding(["core-1"], alone=True, waits=second_waits.set):
            first_wants_again.wait()
            turns.append("second")

    with ThreadPoolExecutor() as threads:
        with holding(["core-1"], alone=True, waits=lambda: None):
            done = threads.submit(second)
            second_waits.wait()
            turns.append("first")
        with holding(["core-1"], alone=True, waits=first_wants_again.set):
            turns.append("first again")
        done.result()
    assert turns == ["first", "second", "first again"]


def test_those_who_need_not_be_alone_hold_a_lock_together() -> None:
    def wait() -> None:
        raise AssertionError("it has to wait")

    with holding(["core-0"], alone=False, waits=wait), holding(["core-0"], alone=False, waits=wait):
        pass


def test_a_folder_that_cannot_be_made_is_named_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TUNELOOM_DEVICE_LOCKS", str(tmp_path / "file" / "locks"))
    with pytest.raises(EngineError, match=r"can't be locked in .*; set TUNELOOM_DEVICE_LOCKS to a folder"):
        shared_folder()


def test_a_report_says_with_whom_a_device_was_shared_and_how_long_was_waited() -> None:
    listed = ResourceList()
    listed.joined(Offer(resource=Device(name="cpu0", key="cpu"), cores=frozenset({1})), 0.0)
    listed.shared("cpu0", "tuneloom tune (pid 7 on here)", 2.0)
    listed.waited_for("cpu0", 0.25)
    listed.waited_for("cpu0", 0.5)
    listed.shared("cpu0", "", 9.0)
    value = (
        "tuneloom tune (pid 7 on here) from 2 s, nobody from 9 s; "
        "2 stages waited for the device, 0.8 s in all; no two measurements overlapped"
    )
    assert shared_facts(listed.note()) == (Fact(name="cpu0: shared with", value=value),)
    assert listed.note()[0]["cores"] == [1]
