"""The local engine with real processes: nothing a call does takes the engine down."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tuneloom.app.conducting.calling import end_of
from tuneloom.engine.api import Engine, EngineReport, ResourceLeft, ResourceShared
from tuneloom.engine.calls import (
    Call,
    CallBegan,
    CallEnded,
    CallResult,
    CallWaits,
    Died,
    KilledBy,
    Lost,
    Place,
    Raised,
    Returned,
)
from tuneloom.engine.local import LocalEngine, Watch
from tuneloom.engine.sharing.locks import holding
from tuneloom.engine.workers import MOST_CALLS, MOST_IDLE_S
from tuneloom.errors import EngineError
from tuneloom.testing.contracts.engine import EngineContract

CALLS = "tuneloom.testing.engines.calls"
PATIENCE_S = 300.0


@pytest.fixture
def engine() -> Iterator[LocalEngine]:
    engine = LocalEngine()
    yield engine
    engine.close()


class TestLocalEngine(EngineContract):
    @pytest.fixture
    def engine(self) -> Iterator[Engine]:
        opened = LocalEngine()
        yield opened
        opened.close()


def result_of(engine: LocalEngine, call: Call) -> CallResult:
    engine.start("the call", call)
    result = end_of(engine, "the call", 30)
    assert not isinstance(result, Lost)
    return result


def test_memory_without_end_is_refused_to_the_call_alone(engine: LocalEngine) -> None:
    result = result_of(engine, Call(function=f"{CALLS}:eat_memory", memory_bytes=256 << 20))
    assert isinstance(result, Raised)
    assert result.error.startswith("MemoryError")


@pytest.mark.parametrize(("function", "why"), [("unreadable", "read: TypeError"), ("unsendable", "sent")])
def test_a_result_that_cannot_be_passed_on_costs_one_call(
    engine: LocalEngine, function: str, why: str
) -> None:
    result = result_of(engine, Call(function=f"{CALLS}:{function}", worker="kept"))
    assert isinstance(result, Raised) and f"its result can't be {why}" in result.error
    assert result_of(engine, Call(function=f"{CALLS}:add", arguments=(1, 1), worker="kept")) == Returned(
        value=2
    )


def test_a_call_waits_for_the_device_that_another_process_uses_and_its_time_begins_after_that(
    engine: LocalEngine,
) -> None:
    call = Call(function=f"{CALLS}:add", arguments=(1, 1), alone=True, locks=("core-9",), timeout_s=3600)
    heard = reports(engine)
    with holding(["core-9"], alone=True, waits=lambda: None):
        engine.start("it", call)
        assert next(heard) == CallWaits(id="it")
        free_s = engine.now_s()
    began = next(heard)
    assert isinstance(began, CallBegan) and began.id == "it" and began.waited_s > 0
    ended = next(heard)
    assert isinstance(ended, CallEnded) and ended.result == Returned(value=2)
    assert free_s <= began.at_s == ended.started_s <= ended.ended_s


def test_a_killed_worker_leaves_its_device_to_others(engine: LocalEngine) -> None:
    engine.start("it", Call(function=f"{CALLS}:hang", alone=True, locks=("core-9",)))
    with ThreadPoolExecutor() as threads:
        held = threading.Event()
        taken = threads.submit(take_when_held, "core-9", held)
        while not held.is_set() and not taken.done():
            engine.poll(0.01)
        engine.stop("it")
        assert taken.result() == "core-9"


def take_when_held(lock: str, held: threading.Event) -> str:
    """Take a lock as soon as somebody has had it; which one was taken."""
    while not held.is_set():
        with holding([lock], alone=True, waits=held.set):
            pass
    return lock


def reports(engine: LocalEngine) -> Iterator[EngineReport]:
    """What the engine reports, one by one: several may come at once."""
    while True:
        yield from engine.poll(30)


@pytest.fixture
def secluded(tmp_path: Path) -> Iterator[LocalEngine]:
    """An engine whose workers have a folder for temporary files that families of other tests do not tidy."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    with closing(LocalEngine(environment={"TMPDIR": str(folder)})) as opened:
        yield opened


def test_what_a_killed_worker_left_in_temporary_folders_goes_with_it(
    secluded: LocalEngine, tmp_path: Path
) -> None:
    note = tmp_path / "note"
    assert isinstance(
        result_of(secluded, Call(function=f"{CALLS}:litter_and_crash", arguments=(str(note),))), Died
    )
    left = Path(note.read_text())
    assert not left.exists()
    assert left.parent.parent.parent == tmp_path / "temporary" and left.parent.parent.exists()
    secluded.close()
    assert not left.parent.parent.exists()


def test_what_a_dead_family_of_workers_left_is_removed_by_the_next(secluded: LocalEngine) -> None:
    kept = result_of(secluded, Call(function=f"{CALLS}:litter"))
    assert isinstance(kept, Returned)
    family = Path(kept.value).parent.parent
    dead = family.with_name("tuneloom-workers-dead")
    (dead / "1").mkdir(parents=True)
    with closing(LocalEngine(environment={"TMPDIR": str(dead.parent)})) as other:
        result_of(other, Call(function=f"{CALLS}:where"))
        assert not dead.exists()
        assert family.exists()


def test_megabytes_on_stdout_disturb_nobody(engine: LocalEngine, capfd: pytest.CaptureFixture[str]) -> None:
    assert result_of(engine, Call(function=f"{CALLS}:chatter")) == Returned(value=8)
    assert capfd.readouterr().out == ""


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


def test_work_on_the_cores_of_a_measurement_pauses_until_it_is_over(
    engine: LocalEngine, tmp_path: Path
) -> None:
    every = frozenset(os.sched_getaffinity(0))
    builder = value_of(engine, Call(function="os:getpid", worker="builder"))
    engine.start("build", Call(function=f"{CALLS}:hang", worker="builder", cores=every))
    measured = tmp_path / "measured"
    engine.start(
        "measure", Call(function=f"{CALLS}:await_file", arguments=(str(measured),), cores=every, alone=True)
    )
    while not is_stopped(builder):
        assert not engine.poll(0.01)
    measured.touch()
    assert end_of(engine, "measure", 30) == Returned(value=True)
    while is_stopped(builder):
        assert not engine.poll(0.01)


def test_what_begins_during_a_measurement_waits_for_its_end(engine: LocalEngine, tmp_path: Path) -> None:
    every = frozenset(os.sched_getaffinity(0))
    measured = tmp_path / "measured"
    engine.start(
        "measure", Call(function=f"{CALLS}:await_file", arguments=(str(measured),), cores=every, alone=True)
    )
    engine.start("build", Call(function=f"{CALLS}:where", cores=every, timeout_s=300))
    for _ in range(20):
        assert not engine.poll(0.01)
    measured.touch()
    ends: list[EngineReport] = []
    while len(ends) < 2:
        ends += engine.poll(30)
    assert [end.id for end in ends if isinstance(end, CallEnded)] == ["measure", "build"]


def test_a_call_larger_than_any_buffer_waits_for_the_end_of_a_measurement(
    engine: LocalEngine, tmp_path: Path
) -> None:
    every = frozenset(os.sched_getaffinity(0))
    measured = tmp_path / "measured"
    engine.start(
        "measure", Call(function=f"{CALLS}:await_file", arguments=(str(measured),), cores=every, alone=True)
    )
    large = bytes(8 << 20)
    for name, worker in (("a", None), ("b", "builder"), ("c", "builder")):
        call = Call(function="builtins:len", arguments=(large,), worker=worker, cores=every, timeout_s=300)
        engine.start(name, call)
    measured.touch()
    ends: list[EngineReport] = []
    while len(ends) < 4:
        ends += engine.poll(30)
    first, *others = [end.result for end in ends if isinstance(end, CallEnded)]
    assert first == Returned(value=True)
    assert others == [Returned(value=len(large))] * 3


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_no_worker_outlives_the_engine(engine: LocalEngine) -> None:
    result = result_of(engine, Call(function=f"{CALLS}:where", worker="tuner"))
    assert isinstance(result, Returned)
    engine.close()
    assert not os.path.exists(f"/proc/{result.value[0]}")


def test_ended_workers_are_reaped_while_the_engine_goes_on(engine: LocalEngine) -> None:
    first = value_of(engine, Call(function="os:getpid"))
    later = {value_of(engine, Call(function="os:getpid"))}
    until_s = engine.now_s() + PATIENCE_S
    while os.path.exists(f"/proc/{first}") and engine.now_s() < until_s:
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


def test_a_waiting_poll_is_woken_from_another_thread(engine: LocalEngine) -> None:
    reports: list[object] = []
    waiting = threading.Thread(target=lambda: reports.append(engine.poll(None)))
    waiting.start()
    engine.wake()
    waiting.join(300)
    assert reports == [[]]


def test_what_a_watch_finds_is_reported_in_its_turn() -> None:
    class Once(Watch):
        def __init__(self) -> None:
            self.found = [ResourceLeft(name="gpu0", reason="unplugged")]

        def look(self) -> list[ResourceLeft]:
            found, self.found = self.found, []
            return found

    with closing(LocalEngine(watch=Once())) as engine:
        assert list(engine.poll(30)) == [ResourceLeft(name="gpu0", reason="unplugged")]


def test_what_a_watch_learns_from_a_call_that_measures_is_reported_before_its_end() -> None:
    shared = ResourceShared(name="cpu0", by="somebody")

    class Sharing(Watch):
        """A watch that knows with whom a device is shared once something is measured there."""

        def __init__(self) -> None:
            self.found: list[ResourceShared] = []

        def look(self) -> list[ResourceShared]:
            found, self.found = self.found, []
            return found

        def fitted(self, call: Call) -> Call:
            self.found += [shared] if call.alone else []
            return call

    with closing(LocalEngine(watch=Sharing())) as engine:
        assert list(engine.poll(0)) == [], "the next look is some time away"
        engine.start("it", Call(function="os:getpid", alone=True))
        reports: list[EngineReport] = []
        while not any(isinstance(report, CallEnded) for report in reports):
            reports += engine.poll(30)
    assert reports[0] == shared


def value_of(engine: LocalEngine, call: Call) -> int:
    result = result_of(engine, call)
    assert isinstance(result, Returned)
    return int(result.value)


def children_of(pid: int) -> set[int]:
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


class Notebook(Watch):
    """A watch that notes which devices calls have lost."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    def lost(self, resource: str) -> None:
        self.noted.append(resource)


def test_a_call_that_finds_its_device_gone_is_lost_and_the_device_has_left() -> None:
    watch = Notebook()
    place = Place(resource="board", machine="local")
    with closing(LocalEngine(watch=watch)) as engine:
        engine.start("it", Call(function=f"{CALLS}:lose_device", place=place))
        reports: list[EngineReport] = []
        while len(reports) < 2:
            reports += engine.poll(30)
    left, ended = reports
    assert left == ResourceLeft(name="board", reason="it was unplugged")
    assert isinstance(ended, CallEnded) and ended.result == Lost(reason="it was unplugged")
    assert watch.noted == ["board"]


def counted(engine: LocalEngine, group: str | None) -> object:
    """How many calls the process of this one has served by now."""
    result = result_of(engine, Call(function=f"{CALLS}:count", arguments=("all",), group=group))
    assert isinstance(result, Returned)
    return result.value


@pytest.fixture
def patient(engine: LocalEngine, monkeypatch: pytest.MonkeyPatch) -> LocalEngine:
    """An engine that ends no process for being idle while other calls take their time."""
    monkeypatch.setattr("tuneloom.engine.workers.MOST_IDLE_S", 3600.0)
    return engine


def test_calls_of_a_group_have_a_process_in_turn_until_it_has_served_enough(patient: LocalEngine) -> None:
    assert [counted(patient, "builds") for _ in range(MOST_CALLS + 1)] == [*range(1, MOST_CALLS + 1), 1]


def test_groups_share_no_process_with_others(patient: LocalEngine) -> None:
    assert [counted(patient, group) for group in ("mine", "yours", None, "mine", None)] == [1, 1, 1, 2, 1]


def test_a_call_that_is_told_its_device_shares_no_process(patient: LocalEngine) -> None:
    told = Call(function=f"{CALLS}:count", arguments=("all",), group="builds", environment={"DEVICE": "7"})
    assert counted(patient, "builds") == 1
    assert [result_of(patient, told) for _ in range(2)] == [Returned(value=1)] * 2
    assert counted(patient, "builds") == 2


def test_calls_of_a_group_at_the_same_time_have_a_process_each(engine: LocalEngine) -> None:
    for call_id in ("a", "b"):
        engine.start(call_id, Call(function=f"{CALLS}:where", group="builds"))
    ended: dict[str, object] = {}
    while len(ended) < 2:
        ended |= {one.id: one.result for one in engine.poll(30) if isinstance(one, CallEnded)}
    assert len({result.value[0] for result in ended.values() if isinstance(result, Returned)}) == 2


@pytest.mark.parametrize("bad", ["spoil", "crash", "no_such_function"])
def test_a_call_that_goes_wrong_ends_its_groups_process(engine: LocalEngine, bad: str) -> None:
    counted(engine, "builds")
    result_of(engine, Call(function=f"{CALLS}:{bad}", group="builds"))
    assert counted(engine, "builds") == 1


def test_an_idle_process_that_is_killed_costs_no_call(patient: LocalEngine) -> None:
    where = result_of(patient, Call(function=f"{CALLS}:where", group="builds"))
    assert isinstance(where, Returned)
    os.kill(where.value[0], signal.SIGKILL)
    patient.poll(PATIENCE_S)
    assert counted(patient, "builds") == 1


def test_when_the_parent_of_all_workers_is_killed_the_engine_says_so_and_can_be_closed() -> None:
    with closing(LocalEngine()) as engine:
        engine.start("it", Call(function="time:sleep", arguments=(600,)))
        assert engine._nursery is not None
        engine._nursery._process.kill()
        with pytest.raises(EngineError, match=r"the process that starts workers has died.*; try again"):
            engine.poll(None)


def test_a_process_that_nobody_needs_any_more_is_ended(engine: LocalEngine) -> None:
    assert [counted(engine, "builds") for _ in range(2)] == [1, 2]
    engine.poll(2 * MOST_IDLE_S)
    assert counted(engine, "builds") == 1


NICE = """
import os
from tuneloom.engine.calls import Call
from tuneloom.engine.local import LocalEngine

os.setpriority(os.PRIO_PROCESS, 0, {niceness})
engine = LocalEngine()
engine.start("it", Call(function="subprocess:getoutput", arguments=("cat /proc/self/autogroup",)))
found = []
while not found:
    found = [report.result.value for report in engine.poll(None) if hasattr(report, "result")]
print(found[0])
engine.close()
"""


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="the kernel does not group sessions")
@pytest.mark.parametrize("niceness", [0, 7, 19])
def test_workers_of_a_nice_process_are_nice_to_other_sessions(niceness: int) -> None:
    command = [sys.executable, "-c", NICE.format(niceness=niceness)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told.split()[-2:] == ["nice", str(niceness)]
