"""What stages occupy."""

from dataclasses import dataclass

LOCAL = "local"
"""The machine that a run has to itself, unless it is told of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The part of a machine that offers slots for select, build and update."""

    name: str
    slots: int
    machine: str = LOCAL

    def __post_init__(self) -> None:
        if self.slots < 1:
            raise ValueError(f"host {self.name!r} needs at least 1 slot, got {self.slots}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Something to profile on, held by one stage at a time; `key` names its kind.

    A device made of a host's own cores names that host, which is on the same machine, in
    `lends_to`: while no profile wants it, one host stage may hold it instead.
    """

    name: str
    key: str
    lends_to: str | None = None
    machine: str = LOCAL
