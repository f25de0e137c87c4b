"""A device as a farm file lists it, or as a machine finds it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceEntry:
    """A device of some kind: `cores` of a machine, the one with an `index`, or a board at an `address`.

    `node` is the machine that has it; for a device that is no part of a machine, the machine that
    talks to it, or None for any. `target` is what to compile for where that is not what its kind says.
    `options` are the fields that only its own kind knows.
    """

    key: str
    kind: str
    node: str | None = None
    index: int = 0
    cores: int = 1
    address: str | None = None
    target: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    line: int = 0

    @property
    def where(self) -> str:
        """The machine that has it, in words."""
        return self.node or "this machine"
