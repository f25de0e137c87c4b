"""Failures by kind."""

from tuneloom.report.data import ReportData
from tuneloom.report.drawing.markup import EMPTY, Markup, el
from tuneloom.report.drawing.tables import numbers, table
from tuneloom.report.drawing.units import clipped, count, percent

LONGEST_EXAMPLE = 240


def failures_section(data: ReportData) -> Markup:
    """A bar and an example for every kind; one sentence if all trials succeeded."""
    trials = sum(task.trials for task in data.tasks) or sum(model.trials for model in data.models)
    if not trials:
        return EMPTY
    if not data.failures:
        return el("p", f"None: all {count(trials)} trials were measured.")
    most = max(failure.count for failure in data.failures)
    rows = [
        el(
            "tr",
            el("td", failure.kind.replace("_", " "), class_="strong"),
            el("td", _bar(failure.count / most)),
            el("td", count(failure.count), class_="number strong"),
            el("td", percent(failure.count / trials), class_="number"),
            el("td", el("code", clipped(failure.example.strip(), LONGEST_EXAMPLE) or "–"), class_="example"),
        )
        for failure in data.failures
    ]
    return table("failures", ["kind", "", *numbers("trials", "fraction"), "first message"], rows)


def _bar(share: float) -> Markup:
    mark = el("rect", x=0, y=0, width=max(1.0, 160 * share), height=12, rx=2, class_="bad")
    return el("svg", mark, viewBox="0 0 160 12", width=160, height=12, role="img", class_="failure-bar")
