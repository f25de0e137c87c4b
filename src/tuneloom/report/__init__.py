"""One self-contained page about a run. Knows neither the store nor the scheduler."""

from tuneloom.report.assembling import TaskTrial, failure_counts, progress_of, task_result
from tuneloom.report.choices import MemberResult, SearchStory, ShownChoice, story_of
from tuneloom.report.data import (
    CurvePoint,
    DriftPoint,
    Fact,
    FailureCount,
    Gift,
    KnobPair,
    ModelResult,
    ReportData,
    ResourceInfo,
    ResourceSpan,
    ShownCluster,
    TaskResult,
    Validity,
    ValidityCell,
)
from tuneloom.report.page import render_report

__all__ = [
    "CurvePoint",
    "DriftPoint",
    "Fact",
    "FailureCount",
    "Gift",
    "KnobPair",
    "MemberResult",
    "ModelResult",
    "ReportData",
    "ResourceInfo",
    "ResourceSpan",
    "SearchStory",
    "ShownChoice",
    "ShownCluster",
    "TaskResult",
    "TaskTrial",
    "Validity",
    "ValidityCell",
    "failure_counts",
    "progress_of",
    "render_report",
    "story_of",
    "task_result",
]
