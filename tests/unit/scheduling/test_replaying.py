"""A log is read back as it was written, and tells where a core decided otherwise."""

from dataclasses import replace

import pytest

from tuneloom.errors import SchedulingError
from tuneloom.model import Device, Host
from tuneloom.scheduling import Core, policy_named, replay
from tuneloom.scheduling.journal import BEGAN, CoreBegan, Decided, Entry, EventRecord, outline, read, written
from tuneloom.scheduling.messages import (
    Event,
    FinishJob,
    JobCancelled,
    JobPaused,
    JobResumed,
    JobSubmitted,
    RefuseJob,
    ResourceAdded,
    ResourceLost,
    StageFinished,
    StageLost,
)
from tuneloom.scheduling.stages import ANY_CORE, DeviceDemand, JobTicket, SlotDemand, StageRequest

FULL = StageRequest(
    id="0/select",
    job="a",
    lane="0",
    step=2,
    kind="select",
    needs=SlotDemand(lendable=True),
    then=DeviceDemand(key="gpu"),
    expected_s=0.1,
    task="conv2d",
    remaining_s=1 / 3,
    home="a:tuner0",
)
PLAIN = StageRequest(id="p", job="a", lane="l", step=0, kind="x", needs=SlotDemand(slots=3, host="h"))
EVENTS: list[Event] = [
    ResourceAdded(at_s=0.0, resource=Host(name="h", slots=3, machine="far")),
    ResourceAdded(at_s=0.0, resource=Device(name="g", key="gpu", lends_to="h", machine="far")),
    ResourceAdded(at_s=0.0, resource=Device(name="cpu0", key="cpu")),
    ResourceLost(at_s=0.5, name="g"),
    JobSubmitted(
        at_s=1.0,
        ticket=JobTicket(
            id="a",
            priority=-1,
            weight=0.5,
            deadline_s=9.0,
            device_keys=frozenset({"gpu", "cpu"}),
            waits_for_devices=True,
        ),
        ready=(FULL, PLAIN),
    ),
    StageFinished(at_s=2.0, job="a", stage="p", ready=(replace(FULL, id="t", needs=ANY_CORE),)),
    StageFinished(at_s=3.0, job="a", stage="t", done=True),
    StageLost(at_s=4.0, job="a", stage="p"),
    JobPaused(at_s=5.0, job="a"),
    JobResumed(at_s=6.0, job="a"),
    JobCancelled(at_s=7.0, job="a"),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_is_read_back_as_it_was_written(event: Event) -> None:
    assert read(written(event, ())) == Decided(event=event, commands=())


def test_commands_are_logged_in_short() -> None:
    commands = [FinishJob(job="a"), RefuseJob(job="b", reason="no device")]
    entry = read(written(EVENTS[-1], commands))
    assert isinstance(entry, Decided)
    assert entry.commands == (("finish", "a", False), ("refuse", "b", "no device"))


@pytest.mark.parametrize(
    "entry",
    [
        EventRecord(at_s=0.0, kind="JobDanced", body={}),
        EventRecord(at_s=0.0, kind="StageLost", body={"job": "a"}),
        EventRecord(at_s=0.0, kind="ResourceAdded", body={"resource": {"name": "x", "wheels": 4}}),
        EventRecord(at_s=0.0, kind=BEGAN, body={}),
    ],
    ids=str,
)
def test_an_entry_that_nobody_wrote_is_refused(entry: EventRecord) -> None:
    with pytest.raises(SchedulingError, match=entry.kind):
        read(entry)


def request(name: str) -> StageRequest:
    return StageRequest(id=name, job="a", lane=name, step=0, kind="select", needs=SlotDemand())


def log() -> list[Entry]:
    """Two stages on a host with one slot, then the end of the job."""
    core = Core(policy_named("load-aware"))
    events: list[Event] = [
        ResourceAdded(at_s=0.0, resource=Host(name="h", slots=1)),
        JobSubmitted(at_s=0.0, ticket=JobTicket(id="a"), ready=(request("s"), request("t"))),
        StageFinished(at_s=1.0, job="a", stage="s"),
        StageFinished(at_s=2.0, job="a", stage="t", done=True),
    ]
    decided = [
        Decided(event=event, commands=tuple(outline(each) for each in core.handle(event))) for event in events
    ]
    return [CoreBegan(at_s=0.0, policy="load-aware"), *decided]


def test_an_honest_log_shows_no_difference() -> None:
    found = replay(log())
    assert (found.cores, found.equal, found.differences) == (1, 4, [])


def test_a_core_that_began_anew_knows_nothing_of_the_one_before() -> None:
    found = replay([*log()[:3], *log()])
    assert (found.cores, found.equal, found.differences) == (2, 6, [])


def test_a_forged_decision_is_found_and_its_core_is_followed_no_further() -> None:
    entries = log()
    second = entries[2]
    assert isinstance(second, Decided)
    entries[2] = replace(second, commands=(("start", "a", "t", "h", 1, False),))
    found = replay([*entries, *log()])
    (difference,) = found.differences
    assert difference.number == 3 and difference.event == second.event
    assert difference.replayed == (("start", "a", "s", "h", 1, False),)
    assert (found.equal, found.skipped) == (1 + 4, 2)


def test_an_event_that_the_core_refuses_is_a_difference() -> None:
    stray = Decided(event=StageLost(at_s=1.0, job="nobody", stage="x"), commands=())
    found = replay([CoreBegan(at_s=0.0, policy="sequential"), stray])
    assert "no job 'nobody'" in found.differences[0].error


def test_a_log_without_a_beginning_is_refused() -> None:
    with pytest.raises(SchedulingError, match="which policy decided"):
        replay(log()[1:])


def test_decisions_that_were_logged_without_commands_are_counted_apart() -> None:
    bare = [entry if isinstance(entry, CoreBegan) else replace(entry, commands=None) for entry in log()]
    found = replay(bare)
    assert (found.equal, found.unlogged, found.differences) == (0, 4, [])
