"""The words of the project as frozen values."""

from tuneloom.model.budget import Budget
from tuneloom.model.job import REUSE, JobSpec
from tuneloom.model.measuring import MeasuringPolicy
from tuneloom.model.resource import LOCAL, Device, Host
from tuneloom.model.space import (
    ChoiceDomain,
    Decision,
    KnobDomain,
    Lesson,
    Seed,
    SketchSpace,
    TaskSpace,
    TileDomain,
)
from tuneloom.model.stage import ROUND, StageKind
from tuneloom.model.task import Task
from tuneloom.model.trial import Artifact, Candidate, Failure, FailureKind, Measurement, Outcome, Trial
from tuneloom.model.tuner import Search, SearchOptions, SeededSearch, Tuner

__all__ = [
    "LOCAL",
    "REUSE",
    "ROUND",
    "Artifact",
    "Budget",
    "Candidate",
    "ChoiceDomain",
    "Decision",
    "Device",
    "Failure",
    "FailureKind",
    "Host",
    "JobSpec",
    "KnobDomain",
    "Lesson",
    "Measurement",
    "MeasuringPolicy",
    "Outcome",
    "Search",
    "SearchOptions",
    "Seed",
    "SeededSearch",
    "SketchSpace",
    "StageKind",
    "Task",
    "TaskSpace",
    "TileDomain",
    "Trial",
    "Tuner",
]
