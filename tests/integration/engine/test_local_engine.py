"""The local engine with real processes: nothing a call does takes the engine down."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tuneloom.engine.calls import Call, CallResult, Died, KilledBy, Lost, Raised, Returned, TimedOut
from tuneloom.engine.local import LocalEngine

CALLS = "tuneloom.testing.calls"


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    engine = LocalEngine()
    yield engine
    engine.close()


def result_of(engine: LocalEngine, call: Call) -> CallResult:
    engine.start("the call", call)
    while not (ended := engine.poll(30)):
        pass
    assert [end.id for end in ended] == ["the call"]
    assert ended[0].ended_s >= ended[0].started_s
    return ended[0].result


def test_a_call_returns_its_value(engine: LocalEngine) -> None:
    assert result_of(engine, Call(function=f"{CALLS}:add", arguments=(2, 3))) == Returned(value=5)


def test_an_exception_is_a_value_with_its_last_line(engine: LocalEngine) -> None:
    result = result_of(engine, Call(function=f"{CALLS}:refuse"))
    assert isinstance(result, Raised)
    assert result.error == "ValueError: no such thing"
    assert "in refuse" in result.trace


def test_a_crash_costs_one_call_and_names_the_signal(engine: LocalEngine) -> None:
    assert result_of(engine, Call(function=f"{CALLS}:crash")) == Died(cause=KilledBy(signal.SIGSEGV))
    assert result_of(engine, Call(function=f"{CALLS}:add", arguments=(1, 1))) == Returned(value=2)


def test_a_hang_that_blocks_signals_is_ended_by_the_watchdog(engine: LocalEngine) -> None:
    assert result_of(engine, Call(function=f"{CALLS}:hang", timeout_s=0.2)) == TimedOut(after_s=0.2)
    assert result_of(engine, Call(function=f"{CALLS}:add", arguments=(1, 1))) == Returned(value=2)


def test_memory_without_end_is_refused_to_the_call_alone(engine: LocalEngine) -> None:
    result = result_of(engine, Call(function=f"{CALLS}:eat_memory", memory_bytes=256 << 20))
    assert isinstance(result, Raised)
    assert result.error.startswith("MemoryError")


def test_megabytes_on_stdout_disturb_nobody(engine: LocalEngine, capfd: pytest.CaptureFixture[str]) -> None:
    assert result_of(engine, Call(function=f"{CALLS}:chatter")) == Returned(value=8)
    assert capfd.readouterr().out == ""


def test_a_named_worker_keeps_its_state_and_serves_in_order(engine: LocalEngine) -> None:
    call = Call(function=f"{CALLS}:count", arguments=("it",), worker="tuner")
    engine.start("first", call)
    engine.start("second", call)
    ends = []
    while len(ends) < 2:
        ends += engine.poll(30)
    assert [(end.id, end.result) for end in ends] == [
        ("first", Returned(value=1)),
        ("second", Returned(value=2)),
    ]


def test_calls_waiting_behind_a_dead_worker_are_reported_and_the_name_is_free_again(
    engine: LocalEngine,
) -> None:
    engine.start("crash", Call(function=f"{CALLS}:crash", worker="tuner"))
    engine.start("behind", Call(function=f"{CALLS}:count", arguments=("it",), worker="tuner"))
    ends = []
    while len(ends) < 2:
        ends += engine.poll(30)
    assert {end.id: type(end.result) for end in ends} == {"crash": Died, "behind": Lost}
    again = Call(function=f"{CALLS}:count", arguments=("it",), worker="tuner")
    assert result_of(engine, again) == Returned(value=1)


def test_a_spoiled_worker_is_replaced_and_who_waits_is_served_by_its_successor(engine: LocalEngine) -> None:
    for number, function in enumerate(("count", "spoil", "count")):
        arguments = ("x",) if function == "count" else ()
        engine.start(str(number), Call(function=f"{CALLS}:{function}", arguments=arguments, worker="gpu"))
    results: dict[str, CallResult] = {}
    while len(results) < 3:
        results |= {end.id: end.result for end in engine.poll(30)}
    spoiled = results["1"]
    assert isinstance(spoiled, Returned) and spoiled.value.message == "the device is upset"
    assert (results["0"], results["2"]) == (Returned(value=1), Returned(value=1))


def test_a_stopped_call_is_never_reported(engine: LocalEngine) -> None:
    engine.start("hang", Call(function=f"{CALLS}:hang"))
    engine.start("add", Call(function=f"{CALLS}:add", arguments=(1, 2)))
    engine.stop("hang")
    engine.stop("unknown")
    ends = [end.id for end in engine.poll(30)]
    assert ends == ["add"]
    assert list(engine.poll(0)) == []


def test_calls_are_pinned_to_their_cores_and_run_side_by_side(engine: LocalEngine) -> None:
    core = min(os.sched_getaffinity(0))
    engine.start("a", Call(function=f"{CALLS}:where", cores=frozenset({core})))
    engine.start("b", Call(function=f"{CALLS}:where", cores=frozenset({core})))
    ends = []
    while len(ends) < 2:
        ends += engine.poll(30)
    values = [end.result.value for end in ends if isinstance(end.result, Returned)]
    assert all(cores == {core} for _, cores in values)
    assert len({pid for pid, _ in values}) == 2


def test_no_worker_outlives_the_engine(engine: LocalEngine) -> None:
    result = result_of(engine, Call(function=f"{CALLS}:where", worker="tuner"))
    assert isinstance(result, Returned)
    engine.close()
    assert not os.path.exists(f"/proc/{result.value[0]}")


def test_ended_workers_are_reaped_while_the_engine_goes_on(engine: LocalEngine) -> None:
    first = value_of(engine, Call(function="os:getpid"))
    later = {value_of(engine, Call(function="os:getpid"))}
    while os.path.exists(f"/proc/{first}") and len(later) < 200:
        later.add(value_of(engine, Call(function="os:getpid")))
    assert first not in later and not os.path.exists(f"/proc/{first}")


def test_a_worker_that_dies_before_its_first_call_costs_that_call(engine: LocalEngine) -> None:
    nursery = value_of(engine, Call(function="os:getppid", worker="tuner"))
    tuner = value_of(engine, Call(function="os:getpid", worker="tuner"))
    while not (ahead := children_of(nursery) - {tuner}):
        pass
    os.kill(ahead.pop(), signal.SIGKILL)
    assert result_of(engine, Call(function="os:getpid")) == Died(cause=KilledBy(signal.SIGKILL))
    assert value_of(engine, Call(function=f"{CALLS}:add", arguments=(1, 1))) == 2


def value_of(engine: LocalEngine, call: Call) -> int:
    result = result_of(engine, call)
    assert isinstance(result, Returned)
    return int(result.value)


def children_of(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
