"""One self-contained page about a run. Knows neither the store nor the scheduler."""

from tuneloom.report.assembling import TaskTrial, failure_counts, progress_of, task_result
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
    "ModelResult",
    "ReportData",
    "ResourceInfo",
    "ResourceSpan",
    "ShownCluster",
    "TaskResult",
    "TaskTrial",
    "Validity",
    "ValidityCell",
    "failure_counts",
    "progress_of",
    "render_report",
    "task_result",
]
