"""The log of a core as plain data: what it was told and what it answered, written and read back.

A core that begins is an entry of its own: after a restart a new core decides, and what
the one before it knew is gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never

from tuneloom.errors import SchedulingError
from tuneloom.scheduling.messages import (
    Command,
    Event,
    FinishJob,
    JobCancelled,
    JobPaused,
    JobReprioritised,
    JobResumed,
    JobSubmitted,
    RefuseJob,
    ResourceAdded,
    ResourceLost,
    ShareUsed,
    StageFinished,
    StageLost,
    StartStage,
    StopStage,
)
from tuneloom.scheduling.plain import (
    request_from_plain,
    request_to_plain,
    resource_from_plain,
    resource_to_plain,
    ticket_from_plain,
    ticket_to_plain,
)

BEGAN = "CoreBegan"
_COMMANDS = "commands"

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
class PlainEntry:
    """An entry as a store keeps it: `body` is data that JSON can carry."""

    at_s: float
    kind: str
    body: Mapping[str, Any]


def written_start(began: CoreBegan) -> PlainEntry:
    """The beginning of a core as plain data."""
    return PlainEntry(at_s=began.at_s, kind=BEGAN, body={"policy": began.policy})


def written(event: Event, commands: Sequence[Command]) -> PlainEntry:
    """A decision as plain data."""
    body = _body(event)
    body[_COMMANDS] = [outline(command) for command in commands]
    return PlainEntry(at_s=event.at_s, kind=type(event).__name__, body=body)


def read(entry: PlainEntry) -> Entry:
    """The entry that was written; raises SchedulingError for one that nobody wrote."""
    body = entry.body
    try:
        if entry.kind == BEGAN:
            return CoreBegan(at_s=entry.at_s, policy=str(body["policy"]))
        event = _event(entry.kind, entry.at_s, body)
        commands = body.get(_COMMANDS)
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


def _body(event: Event) -> dict[str, Any]:
    match event:
        case StageFinished():
            body: dict[str, Any] = {"job": event.job, "stage": event.stage}
            if event.ready:
                body["ready"] = [request_to_plain(request) for request in event.ready]
            if event.done:
                body["done"] = True
            return body
        case StageLost():
            return {"job": event.job, "stage": event.stage}
        case JobSubmitted():
            ready = [request_to_plain(request) for request in event.ready]
            return {"ticket": ticket_to_plain(event.ticket), "ready": ready}
        case ResourceAdded():
            return {"resource": resource_to_plain(event.resource)}
        case ResourceLost():
            return {"name": event.name}
        case JobCancelled() | JobPaused() | JobResumed():
            return {"job": event.job}
        case JobReprioritised():
            return {"job": event.job, "priority": event.priority}
        case ShareUsed():
            return {"share": event.share, "key": event.key, "seconds": event.seconds}
        case _:
            assert_never(event)


def _event(kind: str, at_s: float, body: Mapping[str, Any]) -> Event:
    match kind:
        case "StageFinished":
            job = body["job"]
            ready = tuple(request_from_plain(job, plain) for plain in body.get("ready", ()))
            done = bool(body.get("done"))
            return StageFinished(at_s=at_s, job=job, stage=body["stage"], ready=ready, done=done)
        case "StageLost":
            return StageLost(at_s=at_s, job=body["job"], stage=body["stage"])
        case "JobSubmitted":
            ticket = ticket_from_plain(body["ticket"])
            ready = tuple(request_from_plain(ticket.id, plain) for plain in body["ready"])
            return JobSubmitted(at_s=at_s, ticket=ticket, ready=ready)
        case "ResourceAdded":
            return ResourceAdded(at_s=at_s, resource=resource_from_plain(body["resource"]))
        case "ResourceLost":
            return ResourceLost(at_s=at_s, name=body["name"])
        case "JobCancelled":
            return JobCancelled(at_s=at_s, job=body["job"])
        case "JobPaused":
            return JobPaused(at_s=at_s, job=body["job"])
        case "JobResumed":
            return JobResumed(at_s=at_s, job=body["job"])
        case "JobReprioritised":
            return JobReprioritised(at_s=at_s, job=body["job"], priority=int(body["priority"]))
        case "ShareUsed":
            share, key, seconds = body["share"], body["key"], float(body["seconds"])
            return ShareUsed(at_s=at_s, share=share, key=key, seconds=seconds)
        case _:
            raise ValueError("no such kind of event")
