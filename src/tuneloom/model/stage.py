"""The stages a task goes through."""

from enum import StrEnum


class StageKind(StrEnum):
    """What a stage does; select, build, profile and update repeat."""

    INITIALISE = "initialise"
    SELECT = "select"
    BUILD = "build"
    PROFILE = "profile"
    UPDATE = "update"
    FINALISE = "finalise"


ROUND = (StageKind.SELECT, StageKind.BUILD, StageKind.PROFILE, StageKind.UPDATE)
"""One round of a task, in order."""
