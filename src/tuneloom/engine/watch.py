"""Looking again at this machine while calls run: GPUs come and go."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tuneloom.engine.disturbances import Disturbances
from tuneloom.engine.machine import Machine
from tuneloom.engine.reports import ResourceDisturbed, ResourceJoined, ResourceLeft

_DRIVER = Path("/proc/driver/nvidia/gpus")
_NODES = Path("/dev")
_SECOND_LOOKS = 5

Signs = tuple[object, ...]


def gpu_signs() -> Signs:
    """What changes when a GPU or its driver comes or goes; reading it takes microseconds."""
    tool = shutil.which("nvidia-smi")
    nodes = sorted(node.name for node in _NODES.glob("nvidia[0-9]*"))
    return tool, tool and os.stat(tool).st_mtime_ns, tuple(nodes), tuple(_names_in(_DRIVER))


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


class MachineWatch:
    """Describes a machine again when there are signs of a change, and tells what is different.

    A driver may need seconds until it lists a new GPU, so a change is followed by a few
    more looks. A resource that stays keeps its first description.
    """

    def __init__(
        self, machine: Machine, describe: Callable[[], Machine], signs: Callable[[], Signs] = gpu_signs
    ) -> None:
        self._known = {offer.resource.name: offer for offer in machine.offers}
        self._describe = describe
        self._signs = signs
        self._seen = signs()
        self._looks_left = 0
        self._disturbances = Disturbances()

    def look(self) -> list[ResourceJoined | ResourceLeft | ResourceDisturbed]:
        """What joined or left since the last look, and which GPUs others use."""
        return [*self._come_and_gone(), *self._disturbances.look(self._known.values())]

    def _come_and_gone(self) -> list[ResourceJoined | ResourceLeft]:
        signs = self._signs()
        if signs != self._seen:
            self._seen, self._looks_left = signs, _SECOND_LOOKS
        if not self._looks_left:
            return []
        self._looks_left -= 1
        return self._differences(self._describe())

    def lost(self, resource: str) -> None:
        """Look again, whatever the signs say."""
        self._known.pop(resource, None)
        self._looks_left = _SECOND_LOOKS

    def _differences(self, machine: Machine) -> list[ResourceJoined | ResourceLeft]:
        now = {offer.resource.name: offer for offer in machine.offers}
        gone = [name for name in self._known if name not in now]
        new = [offer for name, offer in now.items() if name not in self._known]
        for name in gone:
            del self._known[name]
        self._known |= {offer.resource.name: offer for offer in new}
        return [
            *(ResourceLeft(name=name, reason="the driver does not list it any more") for name in gone),
            *(ResourceJoined(offer=offer) for offer in new),
        ]
