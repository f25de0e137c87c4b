"""The core again, from the log of what it was told: it has to decide as it did."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from tuneloom.errors import SchedulingError
from tuneloom.scheduling.core import Core
from tuneloom.scheduling.journal import CoreBegan, Decided, Entry, Outline, outline
from tuneloom.scheduling.messages import Event
from tuneloom.scheduling.policies import policy_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first decision of a core that a replay does not repeat; `number` counts entries from 1."""

    number: int
    event: Event
    logged: tuple[Outline, ...]
    replayed: tuple[Outline, ...]
    error: str = ""


@dataclass(slots=True)
class Replay:
    """What replaying a log showed.

    `equal` decisions came out as they were logged. A core is not followed further after its first
    difference: `skipped` counts the decisions after that. `unlogged` ones were told without
    their commands, so nothing can be compared.
    """

    cores: int = 0
    equal: int = 0
    skipped: int = 0
    unlogged: int = 0
    differences: list[Difference] = field(default_factory=list)


def replay(entries: Iterable[Entry]) -> Replay:
    """Feed a log to fresh cores and compare each decision with the logged one.

    Raises SchedulingError for a log that does not begin with the beginning of a core.
    """
    found, core = Replay(), None
    lost = False
    for number, entry in enumerate(entries, start=1):
        if isinstance(entry, CoreBegan):
            core, lost = Core(policy_named(entry.policy)), False
            found.cores += 1
            continue
        if core is None:
            raise SchedulingError("the log does not say which policy decided: an earlier version wrote it")
        if lost:
            found.skipped += 1
            continue
        lost = not _repeat(core, number, entry, found)
    return found


def _repeat(core: Core, number: int, entry: Decided, found: Replay) -> bool:
    """Let a core decide once more; False if it can't be followed any further."""
    error = ""
    replayed: tuple[Outline, ...] = ()
    try:
        replayed = tuple(outline(command) for command in core.handle(entry.event))
    except SchedulingError as refused:
        error = str(refused)
    if entry.commands is None and not error:
        found.unlogged += 1
        return True
    if replayed == entry.commands and not error:
        found.equal += 1
        return True
    logged = entry.commands or ()
    found.differences.append(
        Difference(number=number, event=entry.event, logged=logged, replayed=replayed, error=error)
    )
    return False
