"""What every engine fulfils, as tests that authors of engines inherit.

class TestMyEngine(EngineContract):
    @pytest.fixture
    def engine(self) -> Iterator[Engine]: ...

The engine has to find the functions of `tuneloom.testing.engines.calls`, or behave as if it did.
"""

import signal
from collections.abc import Callable

import pytest

from tuneloom.engine.api import Engine, EngineReport, MachineLost
from tuneloom.engine.calls import (
    Call,
    CallEnded,
    CallResult,
    Died,
    KilledBy,
    Lost,
    Place,
    Raised,
    Returned,
    TimedOut,
)

CALLS = "tuneloom.testing.engines.calls"
_GLANCE_S = 1.0
_GLANCES = 300


class EngineContract:
    """Inherit, and give a fixture `engine` that closes it afterwards."""

    place: Place | None = None
    """Where calls go; an engine of several machines needs one."""

    def lose_machine(self, engine: Engine, machine: str) -> None:
        """Let a machine get lost while calls run there; override if your engine has several."""
        pytest.skip("an engine of one machine is lost with it")

    def elsewhere(self) -> Place:
        """A place on another machine than `place`."""
        pytest.skip("an engine of one machine has no other place")

    def call(self, function: str, *arguments: object, **options: object) -> Call:
        """A call of one of the functions to test with."""
        place = options.pop("place", self.place)
        return Call(function=f"{CALLS}:{function}", arguments=arguments, place=place, **options)  # type: ignore[arg-type]

    def test_a_call_returns_its_value_and_its_times(self, engine: Engine) -> None:
        before_s = engine.now_s()
        engine.start("it", self.call("add", 2, 3))
        (ended,) = self._ends(engine, "it")
        assert ended.result == Returned(value=5)
        assert before_s <= ended.started_s <= ended.ended_s <= engine.now_s()

    def test_an_exception_is_a_value_with_its_last_line(self, engine: Engine) -> None:
        result = self._result(engine, self.call("refuse"))
        assert isinstance(result, Raised)
        assert result.error == "ValueError: no such thing"

    def test_a_crash_costs_one_call_and_names_its_signal(self, engine: Engine) -> None:
        assert self._result(engine, self.call("crash")) == Died(cause=KilledBy(signal.SIGSEGV))
        assert self._result(engine, self.call("add", 1, 1)) == Returned(value=2)

    def test_a_hang_is_ended_after_its_time(self, engine: Engine) -> None:
        assert self._result(engine, self.call("hang", timeout_s=0.2)) == TimedOut(after_s=0.2)
        assert self._result(engine, self.call("add", 1, 1)) == Returned(value=2)

    def test_calls_without_a_worker_share_nothing(self, engine: Engine) -> None:
        for name in ("first", "second"):
            engine.start(name, self.call("count", "it"))
        assert [end.result for end in self._ends(engine, "first", "second")] == [Returned(value=1)] * 2

    def test_a_named_worker_keeps_its_state_and_serves_in_order(self, engine: Engine) -> None:
        engine.start("first", self.call("count", "it", worker="w"))
        engine.start("second", self.call("count", "it", worker="w"))
        ends = self._ends(engine, "first", "second")
        assert [(end.id, end.result) for end in ends] == [
            ("first", Returned(value=1)),
            ("second", Returned(value=2)),
        ]

    def test_calls_behind_a_dead_worker_are_lost_and_its_name_is_free_again(self, engine: Engine) -> None:
        engine.start("before", self.call("count", "it", worker="w"))
        engine.start("crash", self.call("crash", worker="w"))
        engine.start("behind", self.call("count", "it", worker="w"))
        results = {end.id: end.result for end in self._ends(engine, "before", "crash", "behind")}
        assert isinstance(results["crash"], Died) and isinstance(results["behind"], Lost)
        assert self._result(engine, self.call("count", "it", worker="w")) == Returned(value=1)

    def test_calls_behind_a_hanging_one_are_lost(self, engine: Engine) -> None:
        engine.start("hang", self.call("hang", worker="w", timeout_s=0.2))
        engine.start("behind", self.call("count", "it", worker="w"))
        results = {end.id: end.result for end in self._ends(engine, "hang", "behind")}
        assert results["hang"] == TimedOut(after_s=0.2) and isinstance(results["behind"], Lost)

    def test_calls_behind_a_stopped_one_are_lost(self, engine: Engine) -> None:
        engine.start("hang", self.call("hang", worker="w"))
        engine.start("behind", self.call("count", "it", worker="w"))
        engine.stop("hang")
        (ended,) = self._ends(engine, "behind")
        assert isinstance(ended.result, Lost) and ended.result.reason

    def test_a_spoiled_worker_is_replaced_and_who_waits_is_served_by_its_successor(
        self, engine: Engine
    ) -> None:
        engine.start("0", self.call("count", "x", worker="gpu"))
        engine.start("1", self.call("spoil", worker="gpu"))
        engine.start("2", self.call("count", "x", worker="gpu"))
        results = {end.id: end.result for end in self._ends(engine, "0", "1", "2")}
        spoiled = results["1"]
        assert isinstance(spoiled, Returned) and spoiled.value.spoils_worker
        assert results["0"] == results["2"] == Returned(value=1)

    def test_a_released_worker_forgets(self, engine: Engine) -> None:
        assert self._result(engine, self.call("count", "it", worker="w")) == Returned(value=1)
        engine.release("w")
        engine.release("nobody has this name")
        assert self._result(engine, self.call("count", "it", worker="w")) == Returned(value=1)

    def test_a_stopped_call_is_never_reported(self, engine: Engine) -> None:
        engine.start("hang", self.call("hang"))
        engine.start("add", self.call("add", 1, 2))
        engine.stop("hang")
        engine.stop("nobody has this id")
        assert [end.id for end in self._ends(engine, "add")] == ["add"]
        assert list(engine.poll(0)) == []

    def test_the_id_of_a_stopped_call_may_be_used_again(self, engine: Engine) -> None:
        engine.start("it", self.call("hang"))
        engine.stop("it")
        assert self._result(engine, self.call("add", 1, 2)) == Returned(value=3)

    def test_waiting_for_nothing_ends_with_its_time(self, engine: Engine) -> None:
        before_s = engine.now_s()
        assert list(engine.poll(0.01)) == []
        assert engine.now_s() >= before_s

    def test_preparing_and_closing_may_be_asked_for_twice(self, engine: Engine) -> None:
        engine.prepare()
        engine.prepare()
        assert self._result(engine, self.call("add", 1, 1)) == Returned(value=2)
        engine.close()
        engine.close()

    def test_a_lost_machine_is_reported_and_its_calls_may_begin_again_elsewhere(self, engine: Engine) -> None:
        other = self.elsewhere()
        assert self.place is not None
        engine.start("here", self.call("hang"))
        engine.start("there", self.call("add", 1, 2, place=other))
        self._ends(engine, "there")
        self.lose_machine(engine, self.place.machine)
        lost = self._await(engine, lambda report: isinstance(report, MachineLost))
        assert isinstance(lost, MachineLost)
        assert (lost.name, bool(lost.reason)) == (self.place.machine, True)
        engine.start("here", self.call("add", 2, 2, place=other))
        (ended,) = self._ends(engine, "here")
        assert ended.result == Returned(value=4)

    def test_a_workers_name_on_another_machine_is_another_worker(self, engine: Engine) -> None:
        other = self.elsewhere()
        assert self._result(engine, self.call("count", "it", worker="w")) == Returned(value=1)
        there = self.call("count", "it", worker="w", place=other)
        assert self._result(engine, there) == Returned(value=1)
        assert self._result(engine, self.call("count", "it", worker="w")) == Returned(value=2)

    def _result(self, engine: Engine, call: Call) -> CallResult | Lost:
        engine.start("it", call)
        return self._ends(engine, "it")[0].result

    def _ends(self, engine: Engine, *ids: str) -> list[CallEnded]:
        """The ends of these calls, in the order in which they were reported."""
        ends: list[CallEnded] = []
        for _ in range(_GLANCES):
            ends += [report for report in engine.poll(_GLANCE_S) if isinstance(report, CallEnded)]
            if len(ends) >= len(ids):
                break
        assert sorted(end.id for end in ends) == sorted(ids)
        return ends

    def _await(self, engine: Engine, wanted: Callable[[EngineReport], bool]) -> EngineReport | None:
        for _ in range(_GLANCES):
            for report in engine.poll(_GLANCE_S):
                if wanted(report):
                    return report
        return None
