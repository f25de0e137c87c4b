"""The core again, from the log of what it was told."""

from collections.abc import Iterable, Iterator

from tuneloom.scheduling.core import Core
from tuneloom.scheduling.messages import Command, Event
from tuneloom.scheduling.policies import policy_named


def replay(policy: str, events: Iterable[Event]) -> Iterator[tuple[Event, list[Command]]]:
    """Feed logged events to a fresh core; each comes with the commands it gave the first time."""
    core = Core(policy_named(policy))
    for event in events:
        yield event, core.handle(event)
