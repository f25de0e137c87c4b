"""The log of a core as plain data: what it was told and what it answered, written and read back.

A core that begins is an entry of its own: after a restart a new core decides, and what
the one before it knew is gone. What has its usual value is not written.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, assert_never, get_args

from tuneloom.errors import SchedulingError
from tuneloom.model import Device, Host
from tuneloom.scheduling.messages import Command, Event, FinishJob, RefuseJob, StartStage, StopStage
from tuneloom.scheduling.stages import Demand, DeviceDemand, JobTicket, SlotDemand, StageRequest

BEGAN = "CoreBegan"
_EVENTS = {event.__name__: event for event in get_args(Event)}
_COMMANDS = "commands"
_ATOMS = frozenset((str, int, float, bool, frozenset))

Outline = tuple[Any, ...]
"""What a command orders, in short: its kind, whom it concerns, and what it grants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreBegan:
    """A fresh core with this policy decides from here on."""

    at_s: float
    policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """An event, and what its core answered in short; None if that was not written down."""

    event: Event
    commands: tuple[Outline, ...] | None


Entry = CoreBegan | Decided


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRecord:
    """An entry as a store keeps it: `kind` is the name of its class, `body` is data that JSON can carry."""

    at_s: float
    kind: str
    body: Mapping[str, Any] = field(default_factory=dict)


def written_start(began: CoreBegan) -> EventRecord:
    """The beginning of a core as plain data."""
    return EventRecord(at_s=began.at_s, kind=BEGAN, body={"policy": began.policy})


def written(event: Event, commands: Sequence[Command]) -> EventRecord:
    """A decision as plain data; the job of its stages is told once."""
    body = _plain(event, "at_s")
    body[_COMMANDS] = [outline(command) for command in commands]
    return EventRecord(at_s=event.at_s, kind=type(event).__name__, body=body)


def read(entry: EventRecord) -> Entry:
    """The entry that was written; raises SchedulingError for one that nobody wrote."""
    try:
        if entry.kind == BEGAN:
            return CoreBegan(at_s=entry.at_s, policy=str(entry.body["policy"]))
        event = _event(entry)
        commands = entry.body.get(_COMMANDS)
    except (KeyError, TypeError, ValueError) as error:
        raise SchedulingError(f"an entry {entry.kind!r} of the log can't be read: {error!r}") from error
    if commands is None:
        return Decided(event=event, commands=None)
    return Decided(event=event, commands=tuple(tuple(command) for command in commands))


def outline(command: Command) -> Outline:
    """A command in short; the stages it names are in the events before it."""
    match command:
        case StartStage(request=request, grant=grant):
            return "start", request.job, request.id, grant.resource, grant.slots, grant.shared
        case StopStage():
            return "stop", command.job, command.stage
        case FinishJob():
            return "finish", command.job, command.cancelled
        case RefuseJob():
            return "refuse", command.job, command.reason
        case _:
            assert_never(command)


@cache
def _usual(kind: type) -> tuple[tuple[str, Any], ...]:
    """The fields of a dataclass with their defaults."""
    return tuple((each.name, each.default) for each in fields(kind))


def _plain(value: Any, told: str = "") -> dict[str, Any]:
    """A dataclass as plain data without the field that was `told` and what has its default; sets in order."""
    plain: dict[str, Any] = {}
    kind: type = type(value)
    for name, default in _usual(kind):
        each = getattr(value, name)
        if each is default or name == told:
            continue
        if isinstance(each, tuple):
            plain[name] = [_plain(one, "job") for one in each]
        elif type(each) not in _ATOMS:
            plain[name] = _plain(each)
        elif each != default:
            plain[name] = sorted(each) if isinstance(each, frozenset) else each
    return plain


def _event(entry: EventRecord) -> Event:
    given = {name: value for name, value in entry.body.items() if name != _COMMANDS}
    if "ticket" in given:
        ticket = given["ticket"]
        keys = frozenset(ticket.get("device_keys", ()))
        given["ticket"] = JobTicket(**{**ticket, "device_keys": keys})
    if "resource" in given:
        resource = given["resource"]
        given["resource"] = Host(**resource) if "slots" in resource else Device(**resource)
    if "ready" in given:
        job = given["ticket"].id if "ticket" in given else given["job"]
        given["ready"] = tuple(_request(job, plain) for plain in given["ready"])
    event: Event = _EVENTS[entry.kind](at_s=entry.at_s, **given)
    return event


def _request(job: str, plain: Mapping[str, Any]) -> StageRequest:
    then = _demand(plain["then"]) if plain.get("then") is not None else None
    return StageRequest(**{**plain, "job": job, "needs": _demand(plain["needs"]), "then": then})


def _demand(plain: Mapping[str, Any]) -> Demand:
    return DeviceDemand(key=plain["key"]) if "key" in plain else SlotDemand(**plain)
