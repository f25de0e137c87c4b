"""Who pauses while something is measured, as a table of calls; no process is needed."""

import signal
from dataclasses import dataclass, field
from typing import Any

from tuneloom.engine.calls import Call
from tuneloom.engine.workers import Running, Worker, keep_quiet


@dataclass
class Process:
    """Stands for a process and remembers its signals."""

    signals: list[int] = field(default_factory=list)

    def signal(self, number: int) -> None:
        self.signals.append(number)


def working(cores: set[int] | None, *, alone: bool = False, timeout_s: float | None = None) -> Worker:
    process: Any = Process()
    call = Call(
        function="f", cores=None if cores is None else frozenset(cores), alone=alone, timeout_s=timeout_s
    )
    return Worker(process, None, current=Running("call", call, started_s=0.0))


def paused(*workers: Worker) -> list[bool]:
    return [worker.paused_at_s is not None for worker in workers]


def test_work_on_the_cores_of_a_measurement_pauses_and_goes_on_afterwards() -> None:
    measuring, building = working({0, 1}, alone=True), working({0, 1})
    keep_quiet([measuring, building], 1.0)
    assert paused(measuring, building) == [False, True]
    measuring.current = None
    keep_quiet([measuring, building], 3.0)
    assert paused(measuring, building) == [False, False]
    assert building.process.signals == [signal.SIGSTOP, signal.SIGCONT]  # type: ignore[attr-defined]


def test_work_on_other_cores_or_on_none_in_particular_goes_on() -> None:
    others = working({0}), working(None)
    keep_quiet([working({1}, alone=True), *others], 1.0)
    assert paused(*others) == [False, False]


def test_one_core_in_common_is_enough() -> None:
    building = working({0, 1})
    keep_quiet([working({1, 2}, alone=True), building], 1.0)
    assert paused(building) == [True]


def test_measurements_that_share_cores_by_order_do_not_stop_each_other() -> None:
    both = working({0}, alone=True), working({0}, alone=True)
    keep_quiet(both, 1.0)
    assert paused(*both) == [False, False]


def test_a_measurement_on_no_cores_of_its_own_stops_nobody() -> None:
    building = working({0})
    keep_quiet([working(None, alone=True), building], 1.0)
    assert paused(building) == [False]


def test_a_worker_is_told_once_however_often_one_looks() -> None:
    measuring, building = working({0}, alone=True), working({0})
    for now_s in (1.0, 2.0, 3.0):
        keep_quiet([measuring, building], now_s)
    assert building.process.signals == [signal.SIGSTOP]  # type: ignore[attr-defined]


def test_a_worker_whose_last_word_came_before_the_pause_is_let_go() -> None:
    measuring, done = working({0}, alone=True), working({0})
    keep_quiet([measuring, done], 1.0)
    done.current = None
    keep_quiet([measuring, done], 2.0)
    assert paused(done) == [False]


def test_pauses_do_not_count_for_the_limit() -> None:
    measuring, building = working({0}, alone=True), working({0}, timeout_s=5.0)
    assert building.due_s() == 5.0
    keep_quiet([measuring, building], 1.0)
    assert building.due_s() is None
    measuring.current = None
    keep_quiet([measuring, building], 31.0)
    assert building.due_s() == 35.0


def test_a_call_that_a_pausing_worker_is_given_pauses_from_then_on() -> None:
    measuring, building = working({0}, alone=True), working({0})
    keep_quiet([measuring, building], 1.0)
    assert not building.may_receive()
    call = Call(function="f", cores=frozenset({0}), timeout_s=5.0)
    building.take_on(Running("next", call, started_s=11.0))
    measuring.current = None
    keep_quiet([measuring, building], 31.0)
    assert building.may_receive()
    assert building.due_s() == 36.0
