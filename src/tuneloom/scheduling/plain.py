"""Requests, tickets and resources as plain data and back; what has its usual value is left out."""

from collections.abc import Mapping
from typing import Any

from tuneloom.model import LOCAL, Device, Host
from tuneloom.scheduling.stages import Demand, DeviceDemand, JobTicket, SlotDemand, StageRequest

Plain = dict[str, Any]


def request_to_plain(request: StageRequest) -> Plain:
    """A stage without its job, which is told with the event."""
    plain: Plain = {
        "id": request.id,
        "lane": request.lane,
        "step": request.step,
        "kind": request.kind,
        "needs": _demand_to_plain(request.needs),
    }
    if request.then is not None:
        plain["then"] = _demand_to_plain(request.then)
    if request.expected_s is not None:
        plain["expected_s"] = request.expected_s
    if request.task:
        plain["task"] = request.task
    if request.remaining_s is not None:
        plain["remaining_s"] = request.remaining_s
    if request.home:
        plain["home"] = request.home
    return plain


def request_from_plain(job: str, plain: Mapping[str, Any]) -> StageRequest:
    """The stage of a job."""
    then = plain.get("then")
    return StageRequest(
        id=plain["id"],
        job=job,
        lane=plain["lane"],
        step=plain["step"],
        kind=plain["kind"],
        needs=_demand_from_plain(plain["needs"]),
        then=None if then is None else _demand_from_plain(then),
        expected_s=plain.get("expected_s"),
        task=plain.get("task", ""),
        remaining_s=plain.get("remaining_s"),
        home=plain.get("home", ""),
    )


def ticket_to_plain(ticket: JobTicket) -> Plain:
    """A ticket; its device keys in order."""
    plain: Plain = {
        "id": ticket.id,
        "priority": ticket.priority,
        "weight": ticket.weight,
        "deadline_s": ticket.deadline_s,
        "device_keys": sorted(ticket.device_keys),
        "waits_for_devices": ticket.waits_for_devices,
    }
    if ticket.share:
        plain["share"] = ticket.share
    return plain


def ticket_from_plain(plain: Mapping[str, Any]) -> JobTicket:
    """The ticket."""
    return JobTicket(**{**plain, "device_keys": frozenset(plain["device_keys"])})


def resource_to_plain(resource: Host | Device) -> Plain:
    """A host, told by its slots, or a device, told by its key."""
    plain: Plain = {"name": resource.name}
    if isinstance(resource, Host):
        plain["slots"] = resource.slots
    else:
        plain["key"] = resource.key
        if resource.lends_to is not None:
            plain["lends_to"] = resource.lends_to
    if resource.machine != LOCAL:
        plain["machine"] = resource.machine
    return plain


def resource_from_plain(plain: Mapping[str, Any]) -> Host | Device:
    """The resource."""
    return Host(**plain) if "slots" in plain else Device(**plain)


def _demand_to_plain(needs: Demand) -> Plain:
    if isinstance(needs, DeviceDemand):
        return {"key": needs.key}
    plain: Plain = {}
    if needs.slots != 1:
        plain["slots"] = needs.slots
    if needs.host is not None:
        plain["host"] = needs.host
    if needs.lendable:
        plain["lendable"] = True
    return plain


def _demand_from_plain(plain: Mapping[str, Any]) -> Demand:
    return DeviceDemand(key=plain["key"]) if "key" in plain else SlotDemand(**plain)
