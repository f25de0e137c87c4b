"""What agents of pretended machines say of themselves."""

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.engines.several_machines import small_machine
from tuneloom.engine.machine import Offer
from tuneloom.model import Device, Host

SMALL = "support.engines.surveys:small"
LARGE = "support.engines.surveys:large"


@dataclass(frozen=True, slots=True, kw_only=True)
class PretendedSurvey:
    """A machine with a host and a device, on whatever cores there are."""

    offers: tuple[Offer, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    watch: None = None

    @property
    def files_in(self) -> Path:
        return Path(tempfile.gettempdir()) / f"tuneloom-testing-{os.getpid()}"


def small(name: str) -> PretendedSurvey:
    """A small machine of this name; it tells the id of its agent's process."""
    return PretendedSurvey(offers=small_machine(name).offers, facts={"pid": os.getpid()})


def large(argument: tuple[str, int, tuple[str, ...]]) -> PretendedSurvey:
    """A machine with so many slots, and a device of each of these keys, on no cores at all."""
    name, slots, keys = argument
    host = Host(name=f"{name}/host", slots=slots, machine=name)
    devices = [Device(name=f"{name}/{n}", key=key, machine=name) for n, key in enumerate(keys)]
    offers = (Offer(resource=host), *(Offer(resource=device) for device in devices))
    return PretendedSurvey(offers=offers, facts={"pid": os.getpid()})
