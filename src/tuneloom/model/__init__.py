"""The words of the project as frozen values."""

from tuneloom.model.board import Board, DeviceGone
from tuneloom.model.budget import Budget
from tuneloom.model.fields import JobField
from tuneloom.model.job import DTYPES, JOB_FIELDS, REUSE, JobSpec
from tuneloom.model.measuring import MeasuringRules
from tuneloom.model.opened import (
    EXACT,
    CheckResult,
    ExportedModel,
    Handover,
    ModelRecipe,
    ModelSummary,
    OwnRuntime,
    RuntimeChoice,
    Shapes,
    ShapeVariant,
    TensorInfo,
)
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
from tuneloom.model.tuner import Search, SearchOptions, SeededSearch, TaskSource, Tuner

__all__ = [
    "DTYPES",
    "EXACT",
    "JOB_FIELDS",
    "LOCAL",
    "REUSE",
    "ROUND",
    "Artifact",
    "Board",
    "Budget",
    "Candidate",
    "CheckResult",
    "ChoiceDomain",
    "Decision",
    "Device",
    "DeviceGone",
    "ExportedModel",
    "Failure",
    "FailureKind",
    "Handover",
    "Host",
    "JobField",
    "JobSpec",
    "KnobDomain",
    "Lesson",
    "Measurement",
    "MeasuringRules",
    "ModelRecipe",
    "ModelSummary",
    "Outcome",
    "OwnRuntime",
    "RuntimeChoice",
    "Search",
    "SearchOptions",
    "Seed",
    "SeededSearch",
    "ShapeVariant",
    "Shapes",
    "SketchSpace",
    "StageKind",
    "Task",
    "TaskSource",
    "TaskSpace",
    "TensorInfo",
    "TileDomain",
    "Trial",
    "Tuner",
]
