"""What a machine of a farm tells of itself when its agent starts there."""

import os
import platform
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tuneloom.app.devices.describing import Description, MachineOrder
from tuneloom.app.devices.watching import DeviceWatch, occupied
from tuneloom.engine.machine import Offer
from tuneloom.store import default_place

SURVEY = "tuneloom.app.farm.surveying:survey"
COMPARED = {"tuneloom": "Tuneloom", "apache-tvm": "TVM", "python": "Python"}
"""What has to be the same on all machines, and what people call it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSurvey:
    """A machine as it was found; `watch` notices what changes later."""

    order: MachineOrder
    description: Description
    facts: Mapping[str, Any]
    watch: DeviceWatch

    @property
    def offers(self) -> tuple[Offer, ...]:
        return self.description.offers

    @property
    def files_in(self) -> Path:
        return default_place().parent / "farm" / self.order.name


def survey(order: MachineOrder) -> MachineSurvey:
    """Reserve what this machine is asked for, look at it and begin to watch it."""
    description, watch = occupied(order)
    return MachineSurvey(order=order, description=description, facts=facts_of(description), watch=watch)


def facts_of(description: Description) -> dict[str, Any]:
    """Plain data about this machine, its software and its devices."""
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        "cores": len(os.sched_getaffinity(0)),
        "cpu": cpu_name(),
        "wall_s": time.time(),
        "versions": versions(),
        "devices": {seen.offer.resource.name: dict(seen.state.facts) for seen in description.devices},
        "troubles": description.troubles,
    }


def versions() -> dict[str, str]:
    """What is installed here."""
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in ("tuneloom", "apache-tvm")},
    }


def cpu_name() -> str:
    """Architecture and model of this machine's CPU, the same for equal ones."""
    wanted = ("model name", "CPU implementer", "CPU part")
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    said = dict.fromkeys(line.partition(":")[2].strip() for line in lines if line.startswith(wanted))
    return " ".join([platform.machine(), *said])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
