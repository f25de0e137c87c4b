"""The pure scheduling core: events in, commands out; no clock, no I/O."""

from tuneloom.scheduling.core import Core
from tuneloom.scheduling.moves import MOVES, JobState
from tuneloom.scheduling.policies import POLICIES, policy_named
from tuneloom.scheduling.replaying import replay
from tuneloom.scheduling.views import CoreView, JobView, ResourceView, RunningView, view

__all__ = [
    "MOVES",
    "POLICIES",
    "Core",
    "CoreView",
    "JobState",
    "JobView",
    "ResourceView",
    "RunningView",
    "policy_named",
    "replay",
    "view",
]
